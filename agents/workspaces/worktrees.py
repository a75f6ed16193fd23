"""Git worktrees: a session's own checkout of a repository that the owner listed.

    <data>/workspaces/<user>/<session>/           the checkout, on a branch of its own
    <repository>/.git/worktrees/<session>/        git's notes about it
    <data>/snapshots/<session>/worktree.json      ours, which no agent can change

The branch and its commits live in the repository itself. An agent that commits needs
its .git, but not its configuration or hooks, which the owner's own git would run:
`jail_mounts` shows the whole .git read-only and lets the agent write objects, refs,
their logs and its worktree's notes. So in a worktree commits, new branches and
stashes work; `git config` and deleting a branch or stash, which locks .git, don't.

Git runs here on a repository that agents can write, so it runs jailed, with all its
filters switched off: files kept by Git LFS stay the pointers that they are.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from uuid import UUID

from agents.conf import conf, snapshots_dir
from agents.errors import WorkspaceError

from .disk import private_folder, remove_tree
from .git import Deadline, Git

BRANCH_PREFIX = "openswarm/"
MAX_PATCH_BYTES = 2_000_000
# What a commit in a worktree writes; ours come into being with the worktree.
WRITABLE_PARTS = ("objects", "refs", "logs")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color")
_OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Worktree:
    repository: str  # the listed folder
    path: str
    branch: str
    base: str  # the commit that it began with
    is_complete: bool = False  # else the server was ended while it was made

    @property
    def git_dir(self) -> Path:
        return Path(self.repository, ".git")

    @property
    def notes(self) -> Path:
        """Git's own folder about this worktree; it is named after its path."""
        return self.git_dir / "worktrees" / Path(self.path).name


@dataclass(frozen=True, slots=True)
class WorktreeStatus:
    branch: str
    base: str
    commits: int
    """Made since the base."""
    unmerged: int
    """Of those, how many no other branch of the repository has."""
    files_changed: int
    """Not committed yet, new files included."""

    @property
    def has_unsaved_work(self) -> bool:
        return self.unmerged > 0 or self.files_changed > 0


@dataclass(frozen=True, slots=True)
class JailMounts:
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()


NO_MOUNTS = JailMounts()


def is_repository(folder: Path) -> bool:
    """Whether a worktree of this folder can be made; a cheap look, no git."""
    git_dir = folder / ".git"
    return _is_real_folder(git_dir) and (git_dir / "HEAD").is_file()


def create(
    session_id: UUID, repository: Path, path: Path, *, ref: str = "HEAD"
) -> Worktree:
    """Check out `ref` into `path`, an empty folder, on a new branch of the session.

    Raises: WorkspaceError with a sentence, and then nothing is left behind.
    """
    git_dir = _checked_git_dir(repository)
    git = _git(git_dir, writable=(git_dir, path))
    base = _commit_of(git, ref)
    made = Worktree(str(repository), str(path), _free_branch(git, path.name), base)
    _write_record(session_id, made)
    try:
        git.run(
            *("worktree", "add", "--quiet", "--no-track"),
            *("-b", made.branch, made.path, base),
        )
        for part in WRITABLE_PARTS:  # each must be there to be mounted
            (git_dir / part).mkdir(exist_ok=True)
    except WorkspaceError:
        remove(session_id, made, with_branch=True)
        raise
    complete = replace(made, is_complete=True)
    _write_record(session_id, complete)
    return complete


def _free_branch(git: Git, name: str) -> str:
    short = f"{BRANCH_PREFIX}{name[:8]}"
    return f"{BRANCH_PREFIX}{name}" if _has(git, f"refs/heads/{short}") else short


def load(session_id: UUID) -> Worktree | None:
    """The worktree that was created for a session, if there is one."""
    try:
        return Worktree(**json.loads(_record(session_id).read_bytes()))
    except FileNotFoundError:
        return None


def forget(session_id: UUID) -> None:
    """Remove the worktree of a session that is deleted, if it has one.

    The branch goes too, unless it has commits that no other branch has.

    Raises: OSError when something can't be deleted.
    """
    worktree = load(session_id)
    if worktree is None:
        return
    try:
        git = _git(_checked_git_dir(Path(worktree.repository)))
        branch = _tips(worktree)[1]
        is_merged = not _has(git, branch) or not _unmerged(git, worktree, branch)
    except WorkspaceError:
        is_merged = False
    remove(session_id, worktree, with_branch=is_merged)


def jail_mounts(worktree: Worktree) -> JailMounts:
    """What an agent in the worktree is shown besides it, so that it can commit.

    Raises: WorkspaceError when the repository is not what it was.
    """
    git_dir = _checked_git_dir(Path(worktree.repository))
    parts = [git_dir / part for part in WRITABLE_PARTS]
    for path in (*parts, worktree.notes):
        if not _is_real_folder(path):
            raise WorkspaceError(f"The repository's {path.name} folder is missing.")
    return JailMounts(readable=(git_dir,), writable=(*parts, worktree.notes))


def status(session_id: UUID, worktree: Worktree) -> WorktreeStatus:
    """Raises: WorkspaceError."""
    git = _git(_checked_git_dir(Path(worktree.repository)))
    head, branch = _tips(worktree)
    tips = [tip for tip in (head, branch) if _has(git, tip)]
    with _scratch(session_id, worktree, _commit_of(git, head)) as (scratch, base):
        changed = scratch.run("diff", "--cached", "--name-only", "-z", *_PLAIN, base)
    return WorktreeStatus(
        branch=worktree.branch,
        base=worktree.base,
        commits=_count(git, *tips, f"^{worktree.base}"),
        unmerged=_unmerged(git, worktree, *tips),
        files_changed=changed.count(b"\0"),
    )


def patch(session_id: UUID, worktree: Worktree) -> str:
    """All that differs from the base, committed or not, as a unified diff.

    Raises: WorkspaceError.
    """
    with _scratch(session_id, worktree, worktree.base) as (scratch, base):
        printed = scratch.run(
            *("diff", "--cached", "-M", "--src-prefix=a/", "--dst-prefix=b/"),
            *(*_PLAIN, base),
            max_output_bytes=MAX_PATCH_BYTES,
            truncated=True,
        )
    return printed.decode(errors="replace")


def discard(session_id: UUID, worktree: Worktree, *, force: bool = False) -> None:
    """Remove the checkout and the branch; the session's processes must be gone.

    Raises: WorkspaceError when that loses work, unless forced.
    """
    if not force:
        found = status(session_id, worktree)
        if found.has_unsaved_work:
            raise WorkspaceError(_what_is_lost(found))
    remove(session_id, worktree, with_branch=True)


def remove(session_id: UUID, worktree: Worktree, *, with_branch: bool) -> None:
    """Remove the checkout and git's notes about it; doing it twice is fine.

    Raises: OSError when something can't be deleted.
    """
    remove_tree(Path(worktree.path))
    if _is_real_folder(worktree.notes.parent):
        remove_tree(worktree.notes)
        with suppress(OSError):  # holds other worktrees
            worktree.notes.parent.rmdir()
    if with_branch:
        # It stays where somebody has checked it out, or the repository is gone.
        with suppress(WorkspaceError):
            git_dir = _checked_git_dir(Path(worktree.repository))
            git = _git(git_dir, writable=(git_dir,))
            git.run("branch", "--quiet", "-D", "--end-of-options", worktree.branch)
    _record(session_id).unlink(missing_ok=True)


def _what_is_lost(found: WorktreeStatus) -> str:
    lost = []
    if found.unmerged:
        commits = "commit" if found.unmerged == 1 else "commits"
        lost.append(f"{found.unmerged} {commits} that no other branch has")
    if found.files_changed:
        files = "file that is" if found.files_changed == 1 else "files that are"
        lost.append(f"{found.files_changed} {files} not committed")
    return f"The worktree holds {' and '.join(lost)}."


def _tips(worktree: Worktree) -> tuple[str, str]:
    """Where the worktree is now, and its branch; the agent may have parted them."""
    return f"worktrees/{worktree.notes.name}/HEAD", f"refs/heads/{worktree.branch}"


def _has(git: Git, ref: str) -> bool:
    return bool(git.run("rev-parse", "-q", "--verify", ref, accepted=(0, 1, 128)))


def _commit_of(git: Git, ref: str) -> str:
    printed = git.run(
        *("rev-parse", "-q", "--verify", "--end-of-options", f"{ref}^{{commit}}"),
        accepted=(0, 1, 128),
    )
    commit = printed.decode(errors="replace").strip()
    if not _OBJECT_ID.fullmatch(commit):
        raise WorkspaceError(f"The repository has no commit “{ref}”.")
    return commit


def _unmerged(git: Git, worktree: Worktree, *tips: str) -> int:
    """How many commits since the base no other branch or tag has."""
    elsewhere = (f"--exclude={worktree.branch}", "--branches", "--remotes", "--tags")
    return _count(git, *tips, f"^{worktree.base}", "--not", *elsewhere)


def _count(git: Git, *revisions: str) -> int:
    return int(git.run("rev-list", "--count", *revisions))


@contextmanager
def _scratch(
    session_id: UUID, worktree: Worktree, base: str
) -> Iterator[tuple[Git, str]]:
    """A git whose index holds all files of the checkout, apart from the repository.

    It has an index and an object store of its own, so that looking changes nothing,
    and believes no index that the agent wrote.
    """
    git_dir, path = _checked_git_dir(Path(worktree.repository)), Path(worktree.path)
    home = private_folder(snapshots_dir() / session_id.hex)
    with TemporaryDirectory(dir=home) as temporary:
        scratch = Path(temporary)
        (scratch / "objects").mkdir()
        git = _git(
            git_dir,
            work_tree=path,
            writable=(scratch,),
            readable=(git_dir, path),
            environment={
                "GIT_INDEX_FILE": str(scratch / "index"),
                "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(git_dir / "objects"),
            },
        )
        git.run("read-tree", base)
        git.run("add", "--all", "--ignore-errors", accepted=(0, 1))
        yield git, base


def _git(
    git_dir: Path,
    *,
    writable: tuple[Path, ...] = (),
    readable: tuple[Path, ...] | None = None,
    work_tree: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Git:
    git = Git(
        git_dir,
        Deadline.after(conf().worktree_timeout_seconds),
        work_tree=work_tree,
        environment=environment,
        writable=writable,
        readable=(git_dir,) if readable is None else readable,
    )
    return replace(git, config=_without_filters(git))


def _without_filters(git: Git) -> dict[str, str]:
    """Settings that switch off every filter of the repository's configuration."""
    printed = git.run(
        *("config", "--null", "--name-only", "--get-regexp", r"^filter\."),
        accepted=(0, 1),
    )
    names = {
        name.rpartition(".")[0]
        for name in printed.decode(errors="surrogateescape").split("\0")
        if name
    }
    off = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {f"{name}.{key}": off[key] for name in sorted(names) for key in off}


def _checked_git_dir(repository: Path) -> Path:
    """The repository's own .git, if it is all in one place.

    Raises: WorkspaceError where git, or a mount, would be led somewhere else.
    """
    git_dir = repository / ".git"
    if repository != repository.resolve() or not is_repository(repository):
        raise WorkspaceError(
            f"The folder {repository} is not a git repository of its own."
        )
    if (git_dir / "commondir").exists():
        raise WorkspaceError("The folder is itself a worktree of another repository.")
    if (git_dir / "objects" / "info" / "alternates").exists():
        raise WorkspaceError("The repository borrows its objects from another one.")
    for part in (*WRITABLE_PARTS, "worktrees"):
        path = git_dir / part
        if os.path.lexists(path) and not _is_real_folder(path):
            raise WorkspaceError(f"The repository's {part} folder is elsewhere.")
    return git_dir


def _is_real_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _record(session_id: UUID) -> Path:
    return snapshots_dir() / session_id.hex / "worktree.json"


def _write_record(session_id: UUID, worktree: Worktree) -> None:
    private_folder(snapshots_dir() / session_id.hex)
    _record(session_id).write_text(json.dumps(asdict(worktree)))
