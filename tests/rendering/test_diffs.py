"""Diffs as rows."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rendering.diffs import (
    DiffRow,
    diff_texts,
    parse_patch,
    rows_from_structured_patch,
)
from tests.rendering.harmless import assert_harmless, text_of
from tests.rendering.hostile import BIG, HOSTILE

PATCH = """\
diff --git a/old name.py b/new name.py
similarity index 90%
rename from old name.py
rename to new name.py
--- a/old name.py
+++ b/new name.py
@@ -1,3 +1,3 @@ def f():
 same
-before <b>
+after
 end
\\ No newline at end of file
diff --git a/made.txt b/made.txt
new file mode 100644
--- /dev/null
+++ b/made.txt
@@ -0,0 +1 @@
+hello
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/logo.png b/logo.png
index 1..2 100644
Binary files a/logo.png and b/logo.png differ
"""


def plain(rows: list[DiffRow]) -> list[tuple]:
    return [(row.kind, row.old_no, row.new_no, text_of(row.html)) for row in rows]


def test_equal_texts_have_no_rows():
    assert diff_texts("a\nb", "a\nb") == []


def test_a_change_is_shown_with_its_line_numbers():
    assert plain(diff_texts("a\nb\nc\n", "a\nB\nc\n")) == [
        ("context", 1, 1, "a"),
        ("del", 2, None, "b"),
        ("add", None, 2, "B"),
        ("context", 3, 3, "c"),
    ]


def test_a_new_file_is_all_additions():
    assert plain(diff_texts("", "a\nb\n")) == [
        ("add", None, 1, "a"),
        ("add", None, 2, "b"),
    ]


def test_far_changes_are_hunks_of_their_own():
    old = [f"line {number}" for number in range(1, 41)]
    new = [*old]
    new[9], new[29] = "ten", "thirty"

    rows = plain(diff_texts("\n".join(old), "\n".join(new)))

    assert [row for row in rows if row[0] == "hunk"] == [
        ("hunk", None, None, "@@ -7,7 +7,7 @@"),
        ("hunk", None, None, "@@ -27,7 +27,7 @@"),
    ]
    assert ("add", None, 30, "thirty") in rows
    assert len(rows) == 2 * (1 + 8)


def test_a_changed_final_newline_is_mentioned():
    assert plain(diff_texts("a", "a\n")) == [
        ("hunk", None, None, "Only the newline at the end of the file differs.")
    ]


def test_changed_line_ends_are_visible_and_kept_ones_are_not():
    assert plain(diff_texts("a\r\n", "a\n"))[0][3] == "a␍"
    assert plain(diff_texts("a\r\nb\r\n", "a\r\nc\r\n"))[0][3] == "a"


def test_lines_are_coloured_by_the_file_name():
    (row,) = diff_texts("", "return", filename="x.py")

    assert row.html == '<span class="tok-k">return</span>'


@given(st.lists(st.sampled_from("abc\n"), max_size=60).map("".join), st.data())
def test_the_rows_rebuild_both_texts(old, data):
    new = data.draw(st.lists(st.sampled_from("abc\n"), max_size=60).map("".join))

    rows = plain(diff_texts(old, new))

    for side, kind in ((old, "del"), (new, "add")):
        lines = side.removesuffix("\n").split("\n") if side else []
        index = 1 if kind == "del" else 2
        shown = {row[index]: row[3] for row in rows if row[0] in (kind, "context")}
        assert all(lines[number - 1] == text for number, text in shown.items())
    removed = sum(row[0] == "del" for row in rows)
    added = sum(row[0] == "add" for row in rows)
    assert added - removed == len(_lines(new)) - len(_lines(old))


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def test_texts_too_different_to_compare_are_replaced_whole():
    old = "same\n" + "".join(f"old {number}\n" for number in range(3000))
    new = "same\n" + "".join(f"new {number}\n" for number in range(3000))

    rows = plain(diff_texts(old, new))

    assert rows[0] == ("context", 1, 1, "same")
    assert [row[0] for row in rows[1:]] == ["del"] * 3000 + ["add"] * 3000


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_lines_are_harmless(text):
    rows = diff_texts(text, f"{text}\nmore", filename="x.html")
    rows += diff_texts("", text)
    for patch in (text, f"--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+{text}"):
        rows += [row for file in parse_patch(patch) for row in file.rows]

    for row in rows:
        assert_harmless(row.html)


def test_a_git_diff_is_read_file_by_file():
    files = parse_patch(PATCH)

    assert [(f.path, f.old_path, f.status, f.added, f.removed) for f in files] == [
        ("new name.py", "old name.py", "renamed", 1, 1),
        ("made.txt", "made.txt", "added", 1, 0),
        ("gone.txt", "gone.txt", "deleted", 0, 1),
        ("logo.png", "logo.png", "binary", 0, 0),
    ]
    assert plain(files[0].rows) == [
        ("hunk", None, None, "@@ -1,3 +1,3 @@ def f():"),
        ("context", 1, 1, "same"),
        ("del", 2, None, "before <b>"),
        ("add", None, 2, "after"),
        ("context", 3, 3, "end"),
        ("hunk", None, None, "\\ No newline at end of file"),
    ]


def test_what_difflib_writes_can_be_read():
    old, new = "a\nb\nc\n", "a\nx\nc\nd\n"
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), "a/f", "b/f"
    )

    (file,) = parse_patch("".join(lines))

    assert (file.path, file.added, file.removed) == ("f", 2, 1)


def test_a_broken_patch_is_shown_line_by_line():
    (file,) = parse_patch("--- a/x\n+++ b/x\n@@ -1,5 +1 @@\n-a")

    assert [text_of(row.html) for row in file.rows] == [
        "--- a/x",
        "+++ b/x",
        "@@ -1,5 +1 @@",
        "-a",
    ]


def test_no_patch_is_no_file():
    assert parse_patch("") == []
    assert parse_patch("\n") == []


def test_rows_are_bounded_over_all_files():
    one = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -0,0 +1,9 @@\n" + "+x\n" * 9

    files = parse_patch(one * 5, max_rows=25)

    assert [len(file.rows) for file in files] == [10, 10, 5, 0, 0]
    assert [file.truncated for file in files] == [False, False, True, True, True]


@pytest.mark.parametrize("text", BIG.values(), ids=BIG)
def test_big_patches_are_bounded(text):
    files = parse_patch(text)

    assert sum(len(file.rows) for file in files) <= 2000


def test_a_structured_patch_keeps_its_numbers():
    hunk = {"oldStart": 5, "oldLines": 2, "newStart": 5, "newLines": 2}

    rows = rows_from_structured_patch([{**hunk, "lines": [" a", "-b", "+c"]}])

    assert plain(rows) == [
        ("hunk", None, None, "@@ -5,2 +5,2 @@"),
        ("context", 5, 5, "a"),
        ("del", 6, None, "b"),
        ("add", None, 6, "c"),
    ]


@pytest.mark.parametrize(
    "hunks",
    [None, 3, "x", {}, [None], [3], [{}], [{"oldStart": "x"}], [[1, 2]]],
)
def test_a_malformed_structured_patch_has_no_rows(hunks):
    assert rows_from_structured_patch(hunks) == []
