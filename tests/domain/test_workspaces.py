"""Choosing where an agent works, and the life of a session's worktree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agents.conf import snapshots_dir, workspaces_dir
from agents.domain import workspaces
from agents.errors import (
    FolderMissingError,
    InvalidInputError,
    RunActiveError,
    WorkspaceError,
)
from agents.models import AgentSession, AuditEntry, ListedFolder, User
from agents.workspaces.worktrees import NO_MOUNTS
from tests.factories import end_turn, make_session, start_turn


@pytest.fixture
def listed(alice: User, tmp_path: Path) -> ListedFolder:
    path = tmp_path / "project"
    path.mkdir()
    (path / "a.txt").write_text("one\n")
    return ListedFolder.objects.create(name="Project", path=str(path))


@pytest.fixture
def repository(listed: ListedFolder) -> ListedFolder:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        git = ["git", "-C", listed.path, *identity, *command]
        subprocess.run(git, check=True)
    return listed


@pytest.fixture
def in_worktree(alice: User, repository: ListedFolder) -> AgentSession:
    return make_session(alice, folder=repository, worktree=True)


def test_a_fresh_folder_is_the_default_and_belongs_to_the_session(session):
    folder = Path(session.cwd)

    assert folder.is_relative_to(workspaces_dir())
    assert (session.owns_cwd, session.worktree_of) == (True, None)
    assert workspaces.ensure_folder(session) == folder


def test_a_listed_folder_is_used_as_it_is(alice, listed):
    session = make_session(alice, folder=listed)

    assert (session.cwd, session.owns_cwd) == (listed.path, False)
    assert workspaces.ensure_folder(session) == Path(listed.path)
    assert workspaces.jail_mounts(session).writable == ()


def test_a_worktree_is_made_when_its_first_turn_begins(in_worktree, repository):
    folder = Path(in_worktree.cwd)
    assert list(folder.iterdir()) == []

    assert workspaces.ensure_folder(in_worktree) == folder

    assert (folder / "a.txt").read_text() == "one\n"
    assert folder.is_relative_to(workspaces_dir())
    assert (in_worktree.worktree_of, in_worktree.owns_cwd) == (repository, True)
    status = workspaces.worktree_status(in_worktree)
    assert status is not None
    assert status.branch == f"openswarm/{str(in_worktree.pk)[:8]}"


def test_later_turns_keep_the_worktree_and_its_files(in_worktree):
    folder = workspaces.ensure_folder(in_worktree)
    (folder / "b.txt").write_text("new\n")

    workspaces.ensure_folder(in_worktree)

    assert (folder / "b.txt").read_text() == "new\n"
    diff = workspaces.diff_of_worktree(in_worktree)
    assert [(file.path, file.status) for file in diff] == [("b.txt", "added")]


@pytest.mark.parametrize("worktree", [True, False])
def test_a_folder_that_is_gone_is_refused_at_launch(alice, listed, worktree):
    (Path(listed.path) / "a.txt").unlink()
    Path(listed.path).rmdir()

    with pytest.raises(InvalidInputError) as refused:
        make_session(alice, folder=listed, worktree=worktree)
    assert refused.value.field == "folder"


def test_a_worktree_of_what_is_no_repository_is_refused_at_launch(alice, listed):
    with pytest.raises(InvalidInputError, match="not a git repository"):
        make_session(alice, folder=listed, worktree=True)
    with pytest.raises(InvalidInputError, match="Choose the repository"):
        make_session(alice, worktree=True)
    assert not AgentSession.objects.exists()


def test_only_a_repository_can_have_a_worktree(listed, request):
    assert not workspaces.is_repository(listed)
    assert workspaces.is_repository(request.getfixturevalue("repository"))


def test_a_repository_without_a_commit_fails_the_turn_with_a_sentence(alice, listed):
    subprocess.run(["git", "-C", listed.path, "init", "-q"], check=True)
    session = make_session(alice, folder=listed, worktree=True)

    with pytest.raises(FolderMissingError, match="no commit “HEAD”"):
        workspaces.ensure_folder(session)


def test_a_half_made_worktree_is_made_again(in_worktree):
    folder = workspaces.ensure_folder(in_worktree)
    record = snapshots_dir() / in_worktree.pk.hex / "worktree.json"
    record.write_text(record.read_text().replace("true", "false"))
    (folder / "a.txt").unlink()

    workspaces.ensure_folder(in_worktree)

    assert (folder / "a.txt").read_text() == "one\n"
    assert workspaces.worktree_status(in_worktree) is not None


def test_the_jail_shows_git_only_while_the_repository_is_listed(
    in_worktree, repository
):
    workspaces.ensure_folder(in_worktree)
    shown = workspaces.jail_mounts(in_worktree)
    git_dir = Path(repository.path, ".git")

    assert shown.readable == (git_dir,)
    assert set(shown.writable) == {
        git_dir / "objects",
        git_dir / "refs",
        git_dir / "logs",
        git_dir / "worktrees" / str(in_worktree.pk),
    }
    repository.delete()
    in_worktree.refresh_from_db()
    assert workspaces.jail_mounts(in_worktree) == NO_MOUNTS


def test_a_worktree_whose_repository_is_gone_fails_the_turn_with_its_path(
    in_worktree, repository
):
    workspaces.ensure_folder(in_worktree)
    Path(repository.path).rename(f"{repository.path}-moved")

    with pytest.raises(FolderMissingError, match=repository.path):
        workspaces.jail_mounts(in_worktree)


def test_discarding_asks_first_and_is_audited(in_worktree, alice):
    folder = workspaces.ensure_folder(in_worktree)
    (folder / "b.txt").touch()
    with pytest.raises(WorkspaceError, match="1 file that is not committed"):
        workspaces.discard_worktree(in_worktree, alice)

    workspaces.discard_worktree(in_worktree, alice, force=True)

    assert not folder.exists()
    entry = AuditEntry.objects.get(action="worktree.discarded")
    assert (entry.actor, entry.data["forced"]) == (alice, True)
    workspaces.ensure_folder(in_worktree)
    assert sorted(path.name for path in folder.iterdir()) == [".git", "a.txt"]


def test_nothing_is_discarded_under_an_agent_at_work(in_worktree, alice):
    workspaces.ensure_folder(in_worktree)
    run = start_turn(in_worktree)

    with pytest.raises(RunActiveError):
        workspaces.discard_worktree(in_worktree, alice, force=True)
    end_turn(run)
    workspaces.discard_worktree(in_worktree, alice)


def test_a_session_without_a_worktree_says_so(session, alice):
    assert workspaces.worktree_status(session) is None
    with pytest.raises(WorkspaceError, match="no worktree"):
        workspaces.discard_worktree(session, alice)


def test_sessions_in_the_same_folder_are_found(alice, bob, listed, tmp_path):
    inner = Path(listed.path) / "inner"
    inner.mkdir()
    nested = ListedFolder.objects.create(name="Inner", path=str(inner))
    beside = tmp_path / "project-2"
    beside.mkdir()
    other = ListedFolder.objects.create(name="Beside", path=str(beside))
    mine = make_session(alice, folder=listed)
    theirs = make_session(bob, folder=listed)
    within = make_session(bob, folder=nested)
    make_session(bob, folder=other)
    closed = make_session(bob, folder=listed)
    AgentSession.objects.filter(pk=closed.pk).update(closed_at="2026-01-01T00:00Z")

    assert set(workspaces.sessions_sharing(listed.path, but=mine.pk)) == {
        theirs,
        within,
    }
    assert set(workspaces.sessions_sharing(str(inner), but=within.pk)) == {mine, theirs}


def test_two_worktrees_of_one_repository_share_nothing(alice, repository):
    first, second = (
        make_session(alice, folder=repository, worktree=True) for _ in range(2)
    )

    assert first.cwd != second.cwd
    assert not workspaces.sessions_sharing(first.cwd, but=first.pk).exists()
