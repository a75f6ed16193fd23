"""Snapshots: everything recorded, nothing run, and put back exactly."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import threading
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from agents.conf import snapshots_dir
from agents.errors import WorkspaceError
from agents.workspaces import snapshots
from agents.workspaces.folders import delete_session_files


@pytest.fixture
def session_id() -> UUID:
    return uuid4()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return path


def tree_of(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Everything below a folder: kind and content, links as links."""
    found: dict[str, tuple[str, bytes]] = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            found[str(path.relative_to(folder))] = look_at(path)
    return found


def look_at(path: Path) -> tuple[str, bytes]:
    if path.is_symlink():
        return "link", os.fsencode(path.readlink())
    if path.is_dir():
        return "folder", b""
    if not path.is_file():
        return "special", b""
    is_program = path.stat().st_mode & stat.S_IXUSR
    return "program" if is_program else "file", path.read_bytes()


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    done = subprocess.run(
        ["git", "-C", folder, *identity, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_what_a_shell_did_is_recorded(folder, session_id):
    (folder / "a.txt").write_text("one\n")
    (folder / "gone.txt").write_text("bye\n")
    before = snapshots.take(folder, session_id)
    script = "echo two >> a.txt; rm gone.txt; mkdir -p x/y; echo new > x/y/z"
    subprocess.run(["/bin/sh", "-c", script], cwd=folder, check=True)

    after = snapshots.take(folder, session_id)

    assert (before.parent, after.parent) == ("", before.commit)
    assert (before.files_changed, after.files_changed) == (2, 3)
    patch = snapshots.patch(session_id, before.commit, after.commit)
    assert [line for line in patch.splitlines() if line[:1] in "+-"] == [
        "--- a/a.txt",
        "+++ b/a.txt",
        "+two",
        "--- a/gone.txt",
        "+++ /dev/null",
        "-bye",
        "--- /dev/null",
        "+++ b/x/y/z",
        "+new",
    ]


def test_an_empty_workspace_is_a_state_too(folder, session_id):
    empty = snapshots.take(folder, session_id)
    (folder / "a").touch()
    (folder / "b").mkdir()

    snapshots.restore(folder, session_id, empty.commit)

    assert empty.commit != ""
    assert tree_of(folder) == {}


def test_nothing_changed_is_no_new_commit(folder, session_id):
    (folder / "a.txt").write_text("one")
    first = snapshots.take(folder, session_id)
    (folder / "a.txt").write_text("one")  # touched, but the same

    second = snapshots.take(folder, session_id)

    assert (second.commit, second.parent) == (first.commit, first.commit)
    assert second.files_changed == 0


def test_files_that_have_settled_are_not_read_again(folder, session_id):
    for number in range(20):
        (folder / f"{number}.txt").write_text("x")
    first = snapshots.take(folder, session_id)
    again = first
    while again.files_read:  # until their times tell a later change
        again = snapshots.take(folder, session_id)
    (folder / "3.txt").write_text("y")

    changed = snapshots.take(folder, session_id)

    assert (first.files_read, changed.files_read, changed.files_changed) == (20, 1, 1)


def test_the_projects_own_git_is_untouched_and_not_recorded(folder, session_id):
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("committed")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    (folder / "b.txt").write_text("staged")
    git(folder, "add", "b.txt")
    (folder / "c.txt").write_text("untracked")
    own_git, status = tree_of(folder / ".git"), git(folder, "status", "--porcelain")
    taken = snapshots.take(folder, session_id)
    (folder / "c.txt").unlink()

    snapshots.restore(folder, session_id, taken.commit)

    assert (taken.files_changed, status) == (3, "A  b.txt\n?? c.txt\n")
    assert git(folder, "status", "--porcelain") == status
    assert tree_of(folder / ".git") == own_git


def test_a_repository_within_is_recorded_as_files(folder, session_id):
    nested = folder / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    (nested / "a.txt").write_text("one")
    git(nested, "add", "-A")
    git(nested, "commit", "-qm", "first")
    taken = snapshots.take(folder, session_id)
    (nested / "a.txt").write_text("two")

    snapshots.restore(folder, session_id, taken.commit)

    assert (nested / "a.txt").read_text() == "one"
    assert git(nested, "log", "--format=%s") == "first\n"


def test_rules_say_what_is_left_out_and_a_restore_leaves_it_alone(folder, session_id):
    (folder / ".gitignore").write_text("*.log\nout/\n!keep.log\n")
    (folder / "sub").mkdir()
    (folder / "sub" / ".gitignore").write_text("secret\n")
    for name in ("node_modules", "out", "sub/__pycache__", "cache", "target"):
        (folder / name).mkdir(parents=True)
        (folder / name / "big").write_text(name)
    tag = "Signature: 8a477f597d28d172789f06886806bc55\n# made by a test"
    (folder / "cache" / "CACHEDIR.TAG").write_text(tag)
    taken = snapshots.take(folder, session_id)
    for name in ("a.log", "keep.log", "sub/secret", "sub/plain", "node_modules/new"):
        (folder / name).write_text("later")

    restored = snapshots.restore(folder, session_id, taken.commit)

    assert taken.files_changed == 2
    assert restored.kept == []
    gone = [name for name in ("keep.log", "sub/plain") if (folder / name).exists()]
    assert gone == []
    for name in ("a.log", "sub/secret", "node_modules/new", "out/big", "target/big"):
        assert (folder / name).exists(), name
    assert (folder / "cache" / "big").exists()


def test_what_was_ignored_then_survives_a_restore_of_the_rules(folder, session_id):
    (folder / ".gitignore").write_text(".env\nprivate/\n")
    (folder / ".env").write_text("precious")
    (folder / "private").mkdir()
    (folder / "private" / "key").write_text("precious")
    taken = snapshots.take(folder, session_id)
    (folder / ".gitignore").unlink()
    (folder / "new").touch()

    preview = snapshots.preview_restore(folder, session_id, taken.commit)
    snapshots.restore(folder, session_id, taken.commit)

    assert sorted(tree_of(folder)) == [".env", ".gitignore", "private", "private/key"]
    assert (folder / ".env").read_text() == "precious"
    assert "precious" not in preview
    assert "a/new" in preview


def test_what_became_ignored_is_recorded_before_it_is_put_back(folder, session_id):
    (folder / "notes").write_text("one")
    taken = snapshots.take(folder, session_id)
    (folder / ".gitignore").write_text("notes\n")
    (folder / "notes").write_text("two")

    restored = snapshots.restore(folder, session_id, taken.commit)

    assert (folder / "notes").read_text() == "one"
    assert not (folder / ".gitignore").exists()
    snapshots.restore(folder, session_id, restored.before.commit)
    assert (folder / "notes").read_text() == "two"


def test_a_preview_changes_nothing_and_says_what_a_restore_does(folder, session_id):
    (folder / "a.txt").write_text("one\n")
    taken = snapshots.take(folder, session_id)
    (folder / "a.txt").write_text("two\n")
    (folder / "b.txt").write_text("new\n")
    files = tree_of(folder)

    preview = snapshots.preview_restore(folder, session_id, taken.commit)

    assert tree_of(folder) == files
    changed = [line for line in preview.splitlines() if line[:1] in "+-"]
    assert changed == [
        "--- a/a.txt",
        "+++ b/a.txt",
        "-two",
        "+one",
        "--- a/b.txt",
        "+++ /dev/null",
        "-new",
    ]


def test_attributes_of_the_workspace_mean_nothing(folder, session_id, tmp_path):
    proof = tmp_path / "ran"
    git(folder, "init", "-q")
    git(folder, "config", "filter.evil.clean", f"touch {proof}; cat")
    git(folder, "config", "filter.evil.smudge", f"touch {proof}; cat")
    git(folder, "config", "filter.evil.required", "true")
    git(folder, "config", "core.fsmonitor", f"touch {proof}")
    git(folder, "config", "diff.evil.textconv", f"touch {proof}; cat")
    git(folder, "config", "core.worktree", str(tmp_path))
    for hook in ("post-checkout", "pre-commit", "post-index-change"):
        path = folder / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {proof}\n")
        path.chmod(0o755)
    rules = "* filter=evil diff=evil text eol=crlf ident working-tree-encoding=UTF-16\n"
    (folder / ".gitattributes").write_text(rules)
    content = b"$Id$\nunix\r\nmixed\n\xff\xfe\0"
    (folder / "odd.txt").write_bytes(content)
    taken = snapshots.take(folder, session_id)
    (folder / "odd.txt").write_bytes(b"other")

    snapshots.restore(folder, session_id, taken.commit)

    assert (folder / "odd.txt").read_bytes() == content
    assert not proof.exists()


def test_links_are_recorded_as_links_and_never_followed(folder, session_id, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (folder / "sub").mkdir()
    (folder / "sub" / "secret").write_text("mine")
    taken = snapshots.take(folder, session_id)
    (folder / "sub" / "secret").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to(outside)
    (folder / "loop").symlink_to("loop")
    (folder / "etc").symlink_to("/etc")
    linked = snapshots.take(folder, session_id)

    snapshots.restore(folder, session_id, taken.commit)

    assert tree_of(folder) == {"sub": ("folder", b""), "sub/secret": ("file", b"mine")}
    assert (outside / "secret").read_text() == "secret"
    snapshots.restore(folder, session_id, linked.commit)
    assert (folder / "sub").readlink() == outside
    assert (outside / "secret").read_text() == "secret"
    patch = snapshots.patch(session_id, "", linked.commit)
    assert "+secret" not in patch


def test_an_ignored_link_in_the_way_is_left_and_named(folder, session_id, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "sub").mkdir()
    (folder / "sub" / "a").write_text("one")
    taken = snapshots.take(folder, session_id)
    (folder / "sub" / "a").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to(outside)
    (folder / ".gitignore").write_text("sub\n")

    restored = snapshots.restore(folder, session_id, taken.commit)

    assert restored.kept == ["sub/a"]
    assert list(outside.iterdir()) == []


def test_a_file_with_a_second_name_elsewhere_is_replaced(folder, session_id, tmp_path):
    (folder / "a").write_text("one")
    taken = snapshots.take(folder, session_id)
    (folder / "a").unlink()
    other = tmp_path / "other"
    other.write_text("theirs")
    (folder / "a").hardlink_to(other)

    snapshots.restore(folder, session_id, taken.commit)

    assert ((folder / "a").read_text(), other.read_text()) == ("one", "theirs")


def test_odd_names_and_special_files(folder, session_id):
    names = [
        b"new\nline",
        b"\xff\xfe",
        b'quo"te\\',
        b" space ",
        b":(top)x",
        b"*",
        b"-f",
    ]
    for name in names:
        Path(os.fsdecode(bytes(folder) + b"/" + name)).write_bytes(name)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        before = tree_of(folder)
        taken = snapshots.take(folder, session_id)
        for name in names:
            Path(os.fsdecode(bytes(folder) + b"/" + name)).unlink()

        restored = snapshots.restore(folder, session_id, taken.commit)

        assert taken.files_changed == len(names)
        assert restored.kept == []
        assert tree_of(folder) == before


def test_rules_in_a_pipe_are_refused_without_waiting_for_a_writer(folder, session_id):
    os.mkfifo(folder / ".gitignore")

    with pytest.raises(WorkspaceError, match="not a file"):
        snapshots.take(folder, session_id)


def test_rules_behind_a_link_are_not_read(folder, session_id, tmp_path):
    (tmp_path / "rules").write_text("*\n")
    (folder / ".gitignore").symlink_to(tmp_path / "rules")
    (folder / "a").touch()

    assert snapshots.take(folder, session_id).files_changed == 2


def test_a_large_file_is_named_and_never_touched(folder, session_id, override_conf):
    override_conf(snapshot_max_file_bytes=10)
    (folder / "small").write_text("x" * 10)
    (folder / "large").write_text("x" * 11)
    taken = snapshots.take(folder, session_id)
    (folder / "large").write_text("y")
    (folder / "small").write_text("y" * 12)

    restored = snapshots.restore(folder, session_id, taken.commit)

    assert (taken.skipped, taken.files_changed) == (["large"], 1)
    assert restored.before.skipped == ["small"]
    assert (folder / "large").read_text() == "y"
    assert (folder / "small").read_text() == "y" * 12


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ({"snapshot_max_files": 3}, "more than 3 files"),
        ({"snapshot_max_total_bytes": 0}, "more than 0 MB"),
        ({"snapshot_max_history_bytes": -1}, "history of this folder is full"),
        ({"snapshot_timeout_seconds": 0}, "too long"),
    ],
)
def test_a_workspace_over_a_limit_is_refused_with_a_sentence(
    folder, session_id, override_conf, limit, sentence
):
    for number in range(4):
        (folder / str(number)).write_text("x")
    override_conf(**limit)

    with pytest.raises(WorkspaceError, match=sentence):
        snapshots.take(folder, session_id)


def test_a_failed_restore_names_no_state_it_does_not_have(folder, session_id):
    (folder / "a").touch()
    snapshots.take(folder, session_id)

    for commit in ("", "HEAD", "--help", "0" * 40, "main; rm"):
        with pytest.raises(WorkspaceError):
            snapshots.restore(folder, session_id, commit)
    assert (folder / "a").exists()


def test_a_folder_that_holds_ignored_files_is_not_replaced(folder, session_id):
    (folder / "x").write_text("a file")
    taken = snapshots.take(folder, session_id)
    (folder / "x").unlink()
    (folder / "x" / "node_modules").mkdir(parents=True)
    (folder / "x" / "node_modules" / "m").touch()
    (folder / "x" / "own").touch()

    restored = snapshots.restore(folder, session_id, taken.commit)

    assert restored.kept == ["x"]
    assert sorted(tree_of(folder)) == ["x", "x/node_modules", "x/node_modules/m"]


def test_five_thousand_files_are_recorded_and_put_back(folder, session_id):
    for number in range(5000):
        path = folder / str(number % 50) / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(number))
    before = tree_of(folder)
    taken = snapshots.take(folder, session_id)
    for number in range(0, 5000, 2):
        (folder / str(number % 50) / f"{number}.txt").unlink()

    snapshots.restore(folder, session_id, taken.commit)

    assert taken.files_changed == 5000
    assert tree_of(folder) == before


def test_deep_folders_are_left_out(folder, session_id):
    deep = folder
    for _ in range(150):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "a").touch()

    taken = snapshots.take(folder, session_id)

    assert (taken.files_changed, len(taken.skipped)) == (0, 1)


def test_takes_at_once_make_one_line_of_states(folder, session_id):
    taken: list[snapshots.Taken] = []

    def write_and_take(number: int) -> None:
        (folder / f"{number}.txt").write_text("x")
        taken.append(snapshots.take(folder, session_id))

    threads = [threading.Thread(target=write_and_take, args=[n]) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    changed = {one.commit: one.parent for one in taken if one.commit != one.parent}
    assert len(taken) == 6
    line = [commit for commit in changed if commit not in changed.values()]
    while line[-1]:
        line.append(changed[line[-1]])
    assert set(line) == {*changed, ""}


def test_files_that_change_while_they_are_recorded_do_no_harm(folder, session_id):
    stop = threading.Event()

    def busy() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            path = folder / str(number % 7)
            path.unlink(missing_ok=True)
            if number % 3:
                path.write_bytes(b"x" * (number % 1000))
            else:
                path.symlink_to("/etc/passwd")

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(10):
            taken = snapshots.take(folder, session_id)
    finally:
        stop.set()
        thread.join()

    assert "root:" not in snapshots.patch(session_id, "", taken.commit)


def test_a_damaged_memory_of_facts_is_made_again(folder, session_id):
    (folder / "a").write_text("x")
    taken = snapshots.take(folder, session_id)
    (snapshots_dir() / session_id.hex / "known.json").write_text("{")

    assert snapshots.take(folder, session_id).commit == taken.commit


def test_the_recorded_files_are_for_the_server_only(folder, session_id):
    snapshots.take(folder, session_id)

    mode = (snapshots_dir() / session_id.hex).stat().st_mode
    assert stat.S_IMODE(mode) == 0o700


def test_deleting_leaves_nothing_on_disk(folder, session_id):
    (folder / "a").write_text("needle-in-a-haystack")
    snapshots.take(folder, session_id)
    assert (snapshots_dir() / session_id.hex).exists()

    delete_session_files(uuid4(), session_id)

    assert not (snapshots_dir() / session_id.hex).exists()
    snapshots.delete_snapshots(session_id)


def test_a_session_that_was_never_recorded_has_no_changes(session_id):
    with pytest.raises(WorkspaceError, match="not recorded"):
        snapshots.patch(session_id, "", "0" * 40)
