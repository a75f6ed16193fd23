"""Snapshots: the files of a workspace as commits in a git folder of ours.

    <data>/snapshots/<session>/repo         a bare repository, one line of commits
    <data>/snapshots/<session>/known.json   what the newest commit holds, by file facts
    <data>/snapshots/<session>/lock         one recorder or restorer at a time

Git never touches the workspace: our own walk reads it (`scanning.py`, `trees.py`) and
gives git the content, so no attribute, filter, hook or link of the workspace means
anything, and nested repositories are just folders. The project's own .git is neither
read nor written. What git can't hold, empty folders and what was skipped, stands in
the commit's message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from agents.conf import conf, snapshots_dir
from agents.errors import WorkspaceError

from .disk import private_folder, remove_tree
from .git import Deadline
from .store import Counts, Store, Taken, locked, names_of

__all__ = [
    "Counts",
    "Restored",
    "Taken",
    "counts",
    "delete_snapshots",
    "patch",
    "preview_restore",
    "restore",
    "take",
]


@dataclass(frozen=True, slots=True)
class Restored:
    before: Taken  # how things were until now, so that this can be undone
    after: Taken
    kept: list[str]  # what could not be put back, and was left as it is


def take(folder: Path, session_id: UUID) -> Taken:
    """Record the files of a workspace; cheap when nothing has changed.

    Raises: WorkspaceError with a sentence when it can't be recorded; OSError.
    """
    with _open(folder, session_id) as store:
        return store.record()[1]


def restore(folder: Path, session_id: UUID, commit: str) -> Restored:
    """Make the workspace what it was; what it is now is recorded first.

    Files made since are removed, except those that were or are left out of
    snapshots (ignored, too large). Nothing outside the workspace is touched.

    Raises: WorkspaceError before anything was changed; OSError.
    """
    with _open(folder, session_id) as store:
        plan, before = store.plan(commit)
        store.deadline = _deadline()  # its own: half a restore helps nobody
        kept = store.apply(plan)
        _, after = store.record()
        return Restored(before, after, names_of(kept))


def preview_restore(folder: Path, session_id: UUID, commit: str) -> str:
    """Return what a restore would change, as a unified diff.

    Raises: WorkspaceError, OSError.
    """
    with _open(folder, session_id) as store:
        plan, _ = store.plan(commit)
        outcome = store.commit_aside(plan.outcome())
        return store.patch(plan.now.commit, outcome)


def patch(session_id: UUID, commit_a: str, commit_b: str) -> str:
    """Return what changed between two states as a unified diff, cut at its limit.

    Either may be "": the state before there was anything.

    Raises: WorkspaceError when one of them isn't there.
    """
    return _recorded(session_id).patch(commit_a, commit_b)


def counts(session_id: UUID, commit_a: str, commit_b: str) -> Counts:
    """Return how much changed between two states, as `patch` does.

    Raises: WorkspaceError when one of them isn't there.
    """
    return _recorded(session_id).counts(commit_a, commit_b)


def _recorded(session_id: UUID) -> Store:
    home = _folder_of(session_id)
    if not home.is_dir():
        raise WorkspaceError("The files of this session were not recorded.")
    return Store(home, None, _deadline())


def delete_snapshots(session_id: UUID) -> None:
    """Delete everything recorded of a session; deleting twice is fine."""
    remove_tree(_folder_of(session_id))


def _folder_of(session_id: UUID) -> Path:
    return snapshots_dir() / session_id.hex


def _deadline() -> Deadline:
    return Deadline.after(conf().snapshot_timeout_seconds)


@contextmanager
def _open(folder: Path, session_id: UUID) -> Iterator[Store]:
    deadline = _deadline()
    home = private_folder(_folder_of(session_id))
    with locked(home / "lock", deadline):
        store = Store(home, folder, deadline)
        store.make_repository()
        yield store
