"""Worktrees: made, looked at and discarded, without the repository running anything."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from agents.conf import snapshots_dir
from agents.errors import WorkspaceError
from agents.rendering.diffs import parse_patch
from agents.workspaces import worktrees
from agents.workspaces.confined import confine
from agents.workspaces.folders import create_workspace, delete_session_files
from agents.workspaces.worktrees import Worktree
from tests.execution.jail import needs_jail

from .test_snapshots import git, tree_of


@pytest.fixture
def session_id() -> UUID:
    return uuid4()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    (path / ".gitignore").write_text("*.log\n")
    (path / "a.txt").write_text("one\n")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "first")
    return path


@pytest.fixture
def worktree(repository: Path, session_id: UUID) -> Worktree:
    return worktrees.create(
        session_id, repository, create_workspace(uuid4(), session_id)
    )


@pytest.fixture(params=[pytest.param("jailed", marks=needs_jail), "bare"])
def either_way(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With bubblewrap, and on a machine that has none."""
    if request.param == "bare":
        programs = tmp_path / "bin"
        programs.mkdir()
        for name in ("git", "sh", "touch", "cat", "rm", "chmod"):
            found = shutil.which(name)
            assert found is not None
            (programs / name).symlink_to(found)
        monkeypatch.setenv("PATH", str(programs))
    is_jailed = confine(["true"], ()) != ["true"]
    assert is_jailed == (request.param == "jailed")


def commit(path: Path, text: str = "two\n") -> None:
    (path / "a.txt").write_text(text)
    git(path, "commit", "-qam", "by the agent")


def test_it_is_a_checkout_on_a_branch_of_its_own(
    either_way, repository, worktree, session_id
):
    path = Path(worktree.path)

    assert (path / "a.txt").read_text() == "one\n"
    assert worktree.branch == f"openswarm/{str(session_id)[:8]}"
    assert git(path, "branch", "--show-current").strip() == worktree.branch
    assert git(path, "status", "--porcelain") == ""
    assert worktree.base == git(repository, "rev-parse", "HEAD").strip()
    assert worktrees.load(session_id) == worktree


def test_another_commit_than_the_newest_can_be_named(repository, session_id):
    git(repository, "tag", "v1")
    commit(repository)
    path = create_workspace(uuid4(), session_id)

    made = worktrees.create(session_id, repository, path, ref="v1")

    assert (path / "a.txt").read_text() == "one\n"
    assert made.base == git(repository, "rev-parse", "v1").strip()


@pytest.mark.parametrize("ref", ["nowhere", "--help", "", "HEAD:a.txt", "main\n"])
def test_what_is_no_commit_is_refused_and_leaves_nothing(repository, session_id, ref):
    path = create_workspace(uuid4(), session_id)

    with pytest.raises(WorkspaceError, match="no commit"):
        worktrees.create(session_id, repository, path, ref=ref)

    assert git(repository, "branch", "--format=%(refname)") == "refs/heads/main\n"
    assert worktrees.load(session_id) is None


def test_a_taken_branch_name_gets_the_long_one(repository, session_id):
    git(repository, "branch", f"openswarm/{str(session_id)[:8]}")

    made = worktrees.create(
        session_id, repository, create_workspace(uuid4(), session_id)
    )

    assert made.branch == f"openswarm/{session_id}"


def test_a_creation_that_fails_leaves_nothing(repository, session_id):
    path = create_workspace(uuid4(), session_id)
    (path / "in the way").touch()

    with pytest.raises(WorkspaceError, match="failed"):
        worktrees.create(session_id, repository, path)

    assert git(repository, "branch", "--format=%(refname)") == "refs/heads/main\n"
    assert not (repository / ".git" / "worktrees").exists()
    assert worktrees.load(session_id) is None


def test_changes_are_counted_and_shown_committed_or_not(
    either_way, worktree, session_id
):
    path = Path(worktree.path)
    commit(path)
    (path / "b.txt").write_text("new\n")
    (path / "c.log").write_text("ignored\n")
    own_index = (worktree.notes / "index").read_bytes()

    found = worktrees.status(session_id, worktree)
    files = parse_patch(worktrees.patch(session_id, worktree))

    assert (found.commits, found.unmerged, found.files_changed) == (1, 1, 1)
    assert [(file.path, file.status) for file in files] == [
        ("a.txt", "modified"),
        ("b.txt", "added"),
    ]
    assert (worktree.notes / "index").read_bytes() == own_index
    assert git(path, "status", "--porcelain") == "?? b.txt\n"


def test_looking_adds_nothing_to_the_repository(repository, worktree, session_id):
    (Path(worktree.path) / "b.txt").write_text("new\n")
    objects = tree_of(repository / ".git")

    worktrees.status(session_id, worktree)
    worktrees.patch(session_id, worktree)

    assert tree_of(repository / ".git") == objects


def test_merged_work_is_not_unmerged(repository, worktree, session_id):
    commit(Path(worktree.path))
    git(repository, "merge", "-q", worktree.branch)

    found = worktrees.status(session_id, worktree)

    assert (found.commits, found.unmerged, found.has_unsaved_work) == (1, 0, False)


@pytest.mark.parametrize(
    ("committed", "changed", "sentence"),
    [
        (True, False, "1 commit that no other branch has."),
        (False, True, "1 file that is not committed."),
        (True, True, "1 commit that no other branch has and 1 file"),
    ],
)
def test_unsaved_work_is_discarded_only_by_force(
    repository, worktree, session_id, committed, changed, sentence
):
    if committed:
        commit(Path(worktree.path))
    if changed:
        (Path(worktree.path) / "b.txt").touch()

    with pytest.raises(WorkspaceError, match=sentence):
        worktrees.discard(session_id, worktree)
    assert (Path(worktree.path) / "a.txt").exists()
    worktrees.discard(session_id, worktree, force=True)

    assert not Path(worktree.path).exists()
    assert git(repository, "branch", "--format=%(refname)") == "refs/heads/main\n"


def test_commits_on_a_detached_head_count_as_work(worktree, session_id):
    path = Path(worktree.path)
    git(path, "checkout", "-q", "--detach")
    commit(path)

    with pytest.raises(WorkspaceError, match="1 commit"):
        worktrees.discard(session_id, worktree)


def test_discarding_leaves_no_trace_in_the_repository(
    either_way, repository, session_id
):
    git_before = git(repository, "worktree", "list"), git(repository, "branch", "-a")
    made = worktrees.create(
        session_id, repository, create_workspace(uuid4(), session_id)
    )

    worktrees.discard(session_id, made)

    assert git_before == (
        git(repository, "worktree", "list"),
        git(repository, "branch", "-a"),
    )
    assert not (repository / ".git" / "worktrees").exists()
    assert worktrees.load(session_id) is None
    assert str(session_id) not in str(tree_of(repository / ".git"))


def test_other_worktrees_are_left_alone(repository, worktree, session_id, tmp_path):
    git(repository, "worktree", "add", "-q", str(tmp_path / "theirs"), "-b", "theirs")

    worktrees.discard(session_id, worktree)

    assert "theirs" in git(repository, "worktree", "list")
    assert git(tmp_path / "theirs", "status", "--porcelain") == ""


def test_a_repository_that_is_gone_does_not_keep_the_checkout(
    repository, worktree, session_id, tmp_path
):
    repository.rename(tmp_path / "moved")

    worktrees.remove(session_id, worktree, with_branch=True)

    assert not Path(worktree.path).exists()


def plant(repository: Path, proof: Path) -> None:
    """Whatever git may run from a repository's own configuration."""
    command = f"touch {proof}"
    settings = {
        "filter.evil.clean": f"{command}; cat",
        "filter.evil.smudge": f"{command}; cat",
        "filter.evil.required": "true",
        "filter.a=b.smudge": f"{command}; cat",
        "filter.a=b.process": command,
        "core.fsmonitor": command,
        "core.hooksPath": str(repository / "hooks"),
        "core.sshCommand": command,
        "core.pager": command,
        "core.editor": command,
        "diff.external": command,
        "diff.evil.textconv": f"{command}; cat",
        "diff.evil.command": command,
        "remote.origin.url": f"ext::sh -c '{command}'",
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "protocol.ext.allow": "always",
    }
    for name, value in settings.items():
        git(repository, "config", name, value)
    rules = "*.txt filter=evil diff=evil\n*.md filter=a=b\n"
    info = repository / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(rules)
    (repository / "hooks").mkdir()
    for hook in ("post-checkout", "post-index-change", "reference-transaction"):
        path = repository / "hooks" / hook
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(0o755)


def test_nothing_of_the_repositorys_configuration_runs(
    either_way, repository, session_id, tmp_path
):
    # In a place that the jail shows, so that it can't hide what ran.
    proof = repository / ".git" / "objects" / "ran"
    (repository / "b.md").write_text("b\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "second")
    plant(repository, proof)
    control = ["git", "-C", repository, "checkout", "-q", "-f", "HEAD~0", "--", "."]
    subprocess.run(control, capture_output=True, check=False)
    assert proof.exists(), "the traps work where nobody takes care"
    proof.unlink()

    made = worktrees.create(
        session_id, repository, create_workspace(uuid4(), session_id)
    )
    (Path(made.path) / "a.txt").write_text("two\n")
    found = worktrees.status(session_id, made)
    patch = worktrees.patch(session_id, made)
    worktrees.discard(session_id, made, force=True)

    assert found.files_changed == 1
    assert "+two" in patch
    assert not proof.exists()


@pytest.mark.parametrize(
    "part", [".git", ".git/objects", ".git/refs", ".git/worktrees"]
)
def test_a_repository_that_leads_elsewhere_is_refused(
    repository, session_id, tmp_path, part
):
    elsewhere = tmp_path / "elsewhere"
    path = repository / part
    if path.exists():
        path.rename(elsewhere)
    else:
        elsewhere.mkdir()
    path.symlink_to(elsewhere)
    before = tree_of(elsewhere)

    with pytest.raises(WorkspaceError):
        worktrees.create(session_id, repository, create_workspace(uuid4(), session_id))

    assert tree_of(elsewhere) == before


def test_borrowed_objects_and_worktrees_are_refused(repository, session_id, tmp_path):
    borrowed = tmp_path / "borrowed"
    git(tmp_path, "clone", "-q", "--shared", str(repository), str(borrowed))
    git(repository, "worktree", "add", "-q", str(tmp_path / "theirs"))
    plain = tmp_path / "plain"
    plain.mkdir()

    for folder in (borrowed, tmp_path / "theirs", plain):
        with pytest.raises(WorkspaceError):
            worktrees.create(session_id, folder, create_workspace(uuid4(), session_id))
    assert [
        worktrees.is_repository(folder)
        for folder in (repository, tmp_path / "theirs", plain)
    ] == [True, False, False]


def test_a_checkout_whose_git_file_was_turned_is_still_the_same(
    repository, worktree, session_id, tmp_path
):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (Path(worktree.path) / ".git").write_text(f"gitdir: {other}/.git\n")

    found = worktrees.status(session_id, worktree)
    worktrees.discard(session_id, worktree)

    assert found.files_changed == 0
    assert (other / ".git").exists()
    assert not worktree.notes.exists()


@pytest.mark.parametrize("has_commits", [True, False])
def test_deleting_the_session_keeps_the_branch_only_for_its_commits(
    repository, session_id, has_commits
):
    user_id = uuid4()
    made = worktrees.create(
        session_id, repository, create_workspace(user_id, session_id)
    )
    if has_commits:
        commit(Path(made.path))

    delete_session_files(user_id, session_id)

    branches = git(repository, "branch", "--format=%(refname:short)").split()
    assert branches == ["main", made.branch] if has_commits else ["main"]
    assert not Path(made.path).exists()
    assert not (repository / ".git" / "worktrees").exists()
    assert not (snapshots_dir() / session_id.hex).exists()


def test_the_record_is_out_of_every_agents_reach(worktree, session_id):
    record = snapshots_dir() / session_id.hex / "worktree.json"

    assert record.exists()
    assert not record.is_relative_to(worktree.path)
