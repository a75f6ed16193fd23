"""Diffs as rows that a template draws: of two texts, of an Edit call, of `git diff`.

Rows are bounded (`max_rows`), and so is the work: texts too different or too long to
compare in good time are shown as one removal and one addition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, Literal

from django.utils.safestring import SafeString
from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from .code import PARSER_FAULTS, highlight_lines
from .text import clean_text, reveal_invisible

RowKind = Literal["add", "del", "context", "hunk"]
FileStatus = Literal["added", "deleted", "modified", "renamed", "binary"]

MAX_ROWS = 2000
_MAX_PATCH_CHARS = 2_000_000
_MAX_COMPARISONS = 1_000_000
_CONTEXT_LINES = 3
_SIGNS: dict[str, RowKind] = {"+": "add", "-": "del", " ": "context"}


@dataclass(frozen=True, slots=True)
class DiffRow:
    kind: RowKind
    old_no: int | None
    new_no: int | None
    html: SafeString


@dataclass(frozen=True, slots=True)
class FileDiff:
    path: str  # as the patch has it: show it with |reveal
    old_path: str  # differs from `path` when renamed
    status: FileStatus
    added: int
    removed: int
    rows: list[DiffRow]
    truncated: bool = False


def count_rows(rows: Sequence[DiffRow], kind: RowKind) -> int:
    return sum(row.kind == kind for row in rows)


def cut_rows(rows: Sequence[DiffRow], max_rows: int) -> tuple[list[DiffRow], bool]:
    return list(rows[:max_rows]), len(rows) > max_rows


def diff_texts(old: str, new: str, *, filename: str | None = None) -> list[DiffRow]:
    """The rows that turn one text into the other, three lines of context around each.

    Empty when they are equal. The caller bounds the texts (`truncate_bytes`).
    """
    if old == new:
        return []
    old, new = _without_common_crs(old, new)
    old_lines, new_lines = _lines(old), _lines(new)
    if old_lines == new_lines:
        return [_hunk_row("Only the newline at the end of the file differs.")]
    return _draw_groups(
        _opcode_groups(old_lines, new_lines),
        highlight_lines("\n".join(old_lines), filename=filename),
        highlight_lines("\n".join(new_lines), filename=filename),
    )


def _without_common_crs(old: str, new: str) -> tuple[str, str]:
    """Drop CRs of files that end all lines in CRLF: only a change of it is news."""
    if all(text.count("\n") == text.count("\r\n") for text in (old, new)):
        return old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    return old, new


def _lines(text: str) -> list[str]:
    """Lines as git counts them; `splitlines` would also split at form feeds."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


_Opcode = tuple[str, int, int, int, int]


def _opcode_groups(old: list[str], new: list[str]) -> list[list[_Opcode]]:
    prefix = _common_prefix(old, new)
    rest = min(len(old), len(new)) - prefix
    suffix = min(_common_prefix(old[::-1], new[::-1]), rest)
    before, after = min(prefix, _CONTEXT_LINES), min(suffix, _CONTEXT_LINES)
    start = prefix - before
    old = old[start : len(old) - suffix + after]
    new = new[start : len(new) - suffix + after]
    if len(old) * len(new) > _MAX_COMPARISONS:
        groups = [_replace_all(len(old), len(new), before, after)]
    else:
        matcher = SequenceMatcher(a=old, b=new)
        groups = list(matcher.get_grouped_opcodes(_CONTEXT_LINES))
    return [
        [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in group]
        for group in groups
    ]


def _common_prefix(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    differing = (index for index, (left, right) in pairs if left != right)
    return next(differing, min(len(old), len(new)))


def _replace_all(old: int, new: int, before: int, after: int) -> list[_Opcode]:
    return [
        ("equal", 0, before, 0, before),
        ("replace", before, old - after, before, new - after),
        ("equal", old - after, old, new - after, new),
    ]


def _draw_groups(
    groups: list[list[_Opcode]], old: list[SafeString], new: list[SafeString]
) -> list[DiffRow]:
    rows: list[DiffRow] = []
    for group in groups:
        _, old_start, _, new_start, _ = group[0]
        if old_start or new_start:  # something above is left out
            _, _, old_end, _, new_end = group[-1]
            rows.append(_hunk_row(_range(old_start, old_end, new_start, new_end)))
        for tag, a, b, c, d in group:
            if tag == "equal":
                rows += (
                    DiffRow("context", a + i + 1, c + i + 1, old[a + i])
                    for i in range(b - a)
                )
            else:
                rows += (DiffRow("del", n + 1, None, old[n]) for n in range(a, b))
                rows += (DiffRow("add", None, n + 1, new[n]) for n in range(c, d))
    return rows


def _range(old_start: int, old_end: int, new_start: int, new_end: int) -> str:
    return (
        f"@@ -{old_start + 1},{old_end - old_start}"
        f" +{new_start + 1},{new_end - new_start} @@"
    )


def _hunk_row(text: str) -> DiffRow:
    return DiffRow("hunk", None, None, reveal_invisible(text))


def rows_from_structured_patch(hunks: Any) -> list[DiffRow]:
    """Rows of the CLI's `structuredPatch`; empty if it has not the expected shape.

    Better than comparing the Edit call's two strings: it knows the line numbers.
    """
    rows: list[DiffRow] = []
    for hunk in hunks if isinstance(hunks, list) else []:
        try:
            numbers = [
                int(hunk[f"{side}{part}"])
                for part in ("Start", "Lines")
                for side in ("old", "new")
            ]
            lines = [str(line) for line in hunk["lines"]]
        except (KeyError, TypeError, ValueError):
            return []
        old_no, new_no, old_count, new_count = numbers
        rows.append(_hunk_row(f"@@ -{old_no},{old_count} +{new_no},{new_count} @@"))
        rows += _number_lines(lines, old_no, new_no)
    return rows


def _number_lines(lines: Iterable[str], old_no: int, new_no: int) -> Iterator[DiffRow]:
    for line in lines:
        kind = _SIGNS.get(line[:1], "hunk")
        if kind == "hunk":  # "\\ No newline at end of file"
            yield _hunk_row(line)
            continue
        in_old, in_new = kind != "add", kind != "del"
        yield DiffRow(
            kind,
            old_no if in_old else None,
            new_no if in_new else None,
            reveal_invisible(line[1:]),
        )
        old_no, new_no = old_no + in_old, new_no + in_new


def parse_patch(text: str, *, max_rows: int = MAX_ROWS) -> list[FileDiff]:
    """The files of a unified diff (`git diff`), `max_rows` rows over all of them.

    What can't be parsed is still shown: as one file without a name, line by line.
    When files at the end had to be left out, the last one says `truncated`.
    """
    text = clean_text(text)
    head = text[:_MAX_PATCH_CHARS]
    if len(head) < len(text):  # half a file would not parse: end before it
        head = head[: head.rfind("\ndiff --git ") + 1]
    try:
        files = list(_file_diffs(PatchSet.from_string(head), max_rows))
    except (UnidiffParseError, *PARSER_FAULTS):
        files = []
    if files and len(head) < len(text):
        files[-1] = replace(files[-1], truncated=True)
    return files or ([_raw_file(text, max_rows)] if text.strip() else [])


def _file_diffs(patch: PatchSet, max_rows: int) -> Iterator[FileDiff]:
    for file in patch:
        rows, truncated = _file_rows(file, max_rows)
        max_rows -= len(rows)
        yield FileDiff(
            path=file.path,
            old_path=_old_path(file),
            status=_status(file),
            added=file.added,
            removed=file.removed,
            rows=rows,
            truncated=truncated,
        )


def _status(file: PatchedFile) -> FileStatus:
    if file.is_binary_file:
        return "binary"
    if file.is_added_file:
        return "added"
    if file.is_removed_file:
        return "deleted"
    return "renamed" if file.is_rename else "modified"


def _file_rows(file: PatchedFile, max_rows: int) -> tuple[list[DiffRow], bool]:
    rows: list[DiffRow] = []
    for hunk in file:
        if len(rows) >= max_rows:
            return rows[: max(max_rows, 0)], True
        rows.append(_hunk_row(_hunk_header(hunk)))
        lines = (line.line_type + line.value.rstrip("\n") for line in hunk)
        rows += _number_lines(lines, hunk.source_start, hunk.target_start)
    return cut_rows(rows, max(max_rows, 0))


def _hunk_header(hunk: Hunk) -> str:
    ranges = (
        f"@@ -{hunk.source_start},{hunk.source_length}"
        f" +{hunk.target_start},{hunk.target_length} @@"
    )
    return f"{ranges} {hunk.section_header}".rstrip()


def _old_path(file: PatchedFile) -> str:
    return file.source_file.removeprefix("a/") if file.is_rename else file.path


def _raw_file(text: str, max_rows: int) -> FileDiff:
    lines = text.split("\n", max_rows)[:max_rows]
    rows = [
        DiffRow(_SIGNS.get(line[:1], "hunk"), None, None, reveal_invisible(line))
        for line in lines
    ]
    return FileDiff(
        path="",
        old_path="",
        status="modified",
        added=count_rows(rows, "add"),
        removed=count_rows(rows, "del"),
        rows=rows,
        truncated=text.count("\n") >= max_rows,
    )
