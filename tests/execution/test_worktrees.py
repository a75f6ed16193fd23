"""A worktree in the jail: an agent can commit, and reach nothing else there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agents.domain import changes, workspaces
from agents.execution.engine import Engine
from agents.models import ListedFolder, User
from agents.workspaces import worktrees
from agents.workspaces.worktrees import Worktree

from .conftest import Chat, in_thread
from .jail import Session, needs_jail

pytestmark = needs_jail


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    return subprocess.run(
        ["git", "-C", folder, *identity, *arguments],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    (path / "a.txt").write_text("one\n")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "first")
    (path / "private.txt").write_text("not committed")
    return path


@pytest.fixture
def worktree(agent: Session, repository: Path) -> Worktree:
    return worktrees.create(agent.session_id, repository, agent.workspace)


def in_jail(agent: Session, worktree: Worktree, script: str) -> tuple[int, str]:
    mounts = worktrees.jail_mounts(worktree)
    done = agent.shell(script, extra_rw=mounts.writable, extra_ro=mounts.readable)
    return done.returncode, done.stdout + done.stderr


def test_an_agent_commits_in_its_worktree(agent, repository, worktree):
    script = (
        "set -e; echo two >> a.txt; git add -A; git commit -qm 'by the agent';"
        " git checkout -qb other; echo three > c.txt; git add c.txt; git stash -q;"
        " git stash apply -q; git commit -qm third; git status --porcelain"
    )

    assert in_jail(agent, worktree, script) == (0, "")

    log = git(repository, "log", "--format=%an: %s", "other")
    assert log.splitlines() == [
        "OpenSwarm agent: third",
        "OpenSwarm agent: by the agent",
        "t: first",
    ]
    git(repository, "fsck", "--strict")
    assert git(repository, "status", "--porcelain") == "?? private.txt\n"


def test_the_owners_checked_out_files_are_not_there(agent, repository, worktree):
    probe = f"ls -A {repository}; cat {repository}/private.txt"

    assert agent.shell(probe, jailed=False).stdout.endswith("not committed")
    assert in_jail(agent, worktree, f"ls -A {repository}") == (0, ".git\n")
    status, _ = in_jail(agent, worktree, f"cat {repository}/private.txt")
    assert status == 1


@pytest.mark.parametrize(
    "script",
    [
        "git config core.pager evil",
        "git config --worktree core.pager evil",
        "echo evil > {git}/hooks/post-checkout",
        "mkdir {git}/hooks; echo evil > {git}/hooks/post-checkout",
        "echo '* filter=evil' > {git}/info/attributes",
        "echo /elsewhere > {git}/commondir",
        "echo ref: refs/heads/evil > {git}/HEAD",
        "mv {git}/objects {git}/objects.old",
        "rm {git}/config",
    ],
)
def test_what_the_owners_git_would_run_cannot_be_written(
    agent, repository, worktree, script
):
    git_dir = repository / ".git"
    before = {
        path: path.read_bytes()
        for path in git_dir.rglob("*")
        if path.is_file() and not path.is_relative_to(worktree.notes)
    }

    in_jail(agent, worktree, script.format(git=git_dir))

    for path, content in before.items():
        assert path.read_bytes() == content
    added = {path for path in git_dir.rglob("*") if path.is_file()} - before.keys()
    assert all(path.is_relative_to(worktree.notes) for path in added)


def test_another_sessions_worktree_is_read_only(
    agent, other_agent, repository, worktree
):
    other = worktrees.create(other_agent.session_id, repository, other_agent.workspace)

    status, said = in_jail(agent, worktree, f"rm {other.notes}/HEAD")

    assert status == 1
    assert "Read-only" in said
    assert (other.notes / "HEAD").exists()


@pytest.mark.cli
async def test_a_turn_in_a_worktree_commits_for_its_owner(
    engine: Engine, alice: User, repository: Path
) -> None:
    listed = await in_thread(
        ListedFolder.objects.create, name="Project", path=str(repository)
    )
    task = "write the file b.txt with the text b then run git add b.txt"
    task += " then run git commit -qm by-the-agent"
    chat = await Chat.launch(alice, task, folder=listed, worktree=True)
    for _ in range(3):
        await chat.decide(is_approved=True)
    run = await chat.finished()

    status = await in_thread(workspaces.worktree_status, chat.session)
    assert status is not None
    assert (run.success, run.error_text) == (True, "")
    assert (status.commits, status.unmerged, status.files_changed) == (1, 1, 0)
    log = await in_thread(git, repository, "log", "--format=%s", status.branch)
    assert log == "by-the-agent\nfirst\n"
    diff = await in_thread(changes.diff_of_run, run)
    assert [(file.path, file.status) for file in diff] == [("b.txt", "added")]
