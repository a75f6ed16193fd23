"""Workspaces: where an agent works - a folder of its own, a listed one, a worktree.

A worktree is made when its first turn begins and not at launch: a large checkout takes
longer than a transaction may, and a launch that is rolled back leaves nothing behind.
Functions that run git must not be called inside a transaction either.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.db.models import Q, QuerySet

from agents.errors import (
    FolderMissingError,
    InvalidInputError,
    RunActiveError,
    WorkspaceError,
)
from agents.models import AgentSession, ListedFolder, User
from agents.rendering.diffs import FileDiff, parse_patch
from agents.workspaces import worktrees
from agents.workspaces.folders import create_workspace
from agents.workspaces.worktrees import (
    NO_MOUNTS,
    JailMounts,
    Worktree,
    WorktreeStatus,
)

from . import audit


def choose_folder(
    session: AgentSession, folder: ListedFolder | None, *, worktree: bool = False
) -> None:
    """Set where a new session works; the caller saves it.

    Raises: InvalidInputError naming the field.
    """
    if folder is None:
        if worktree:
            raise InvalidInputError("Choose the repository.", field="folder")
        session.cwd = str(create_workspace(session.owner_id, session.pk))
        session.owns_cwd = True
        return
    if not Path(folder.path).is_dir():
        raise InvalidInputError(
            f"The folder {folder.path} does not exist any more.", field="folder"
        )
    if not worktree:
        session.cwd, session.owns_cwd = folder.path, False
        return
    if not is_repository(folder):
        raise InvalidInputError(
            f"The folder {folder.path} is not a git repository.", field="folder"
        )
    path = create_workspace(session.owner_id, session.pk)
    session.cwd, session.owns_cwd, session.worktree_of = str(path), True, folder


def is_repository(folder: ListedFolder) -> bool:
    """Whether a worktree can be made of it."""
    return worktrees.is_repository(Path(folder.path))


def ensure_folder(session: AgentSession) -> Path:
    """The folder that a turn works in; a worktree is made if it isn't there yet.

    Raises: FolderMissingError with a sentence that says what to do.
    """
    folder = Path(session.cwd)
    if session.worktree_of is not None and _is_to_be_made(session, folder):
        _make_worktree(session, session.worktree_of)
    if not folder.is_dir():
        raise FolderMissingError(
            f"The session's folder {folder} does not exist any more. Put it back, or"
            " start a new session in another folder."
        )
    return folder


def _is_to_be_made(session: AgentSession, folder: Path) -> bool:
    made = worktrees.load(session.pk)
    if made is not None:
        return not made.is_complete
    # A copy of such a session has files of its own in the place of a worktree.
    return not folder.is_dir() or not any(folder.iterdir())


def _make_worktree(session: AgentSession, repository: ListedFolder) -> None:
    half_made = worktrees.load(session.pk)
    try:
        if half_made is not None:
            worktrees.remove(session.pk, half_made, with_branch=True)
        path = create_workspace(session.owner_id, session.pk)
        worktrees.create(session.pk, Path(repository.path), path)
    except (WorkspaceError, OSError) as error:
        reason = getattr(error, "user_message", None) or str(error)
        raise FolderMissingError(
            f"No worktree of {repository.path} could be made. {reason}"
        ) from error


def jail_mounts(session: AgentSession) -> JailMounts:
    """What the jail shows besides the folder: for a worktree, its repository's .git.

    Nothing any more once the owner has taken the repository off the list.

    Raises: FolderMissingError when the repository was moved away, WorkspaceError
        when it is not what it was.
    """
    made = worktrees.load(session.pk)
    listed = session.worktree_of
    if made is None or listed is None or listed.path != made.repository:
        return NO_MOUNTS
    if not Path(made.repository).is_dir():
        raise FolderMissingError(
            f"The repository {made.repository}, in whose worktree this session works,"
            " does not exist any more. Put it back, or start a new session."
        )
    return worktrees.jail_mounts(made)


def sessions_sharing(folder: str, *, but: UUID | None = None) -> QuerySet[AgentSession]:
    """The open sessions that work in this folder, within it, or in one around it.

    Over all people: a page shows only how many it may not name.
    """
    around = [str(parent) for parent in Path(folder).parents]
    within = Q(cwd__startswith=f"{folder.rstrip('/')}/")
    sharing = AgentSession.objects.filter(
        within | Q(cwd=folder) | Q(cwd__in=around), closed_at=None, parent_session=None
    )
    return sharing if but is None else sharing.exclude(pk=but)


def worktree_status(session: AgentSession) -> WorktreeStatus | None:
    """How far the session's worktree is; None when it has none (yet).

    Raises: WorkspaceError.
    """
    made = worktrees.load(session.pk)
    return None if made is None else worktrees.status(session.pk, made)


@dataclass(frozen=True, slots=True)
class WorktreeLook:
    """A session's worktree for a page; without a status, the sentence why."""

    status: WorktreeStatus | None
    problem: str = ""
    is_made: bool = True


def look_at_worktree(session: AgentSession) -> WorktreeLook | None:
    """None for a session that does not work in a worktree."""
    try:
        status = worktree_status(session)
    except WorkspaceError as error:
        return WorktreeLook(None, error.user_message)
    if status is not None:
        return WorktreeLook(status)
    if session.worktree_of_id is None:
        return None
    return WorktreeLook(None, "It is made when the next turn begins.", is_made=False)


def diff_of_worktree(session: AgentSession) -> list[FileDiff]:
    """All that differs from the commit that the worktree began with.

    Raises: WorkspaceError.
    """
    return parse_patch(worktrees.patch(session.pk, _made(session)))


def discard_worktree(
    session: AgentSession, actor: User, *, force: bool = False
) -> None:
    """Remove the worktree and its branch; a later turn begins with a new one.

    Raises: RunActiveError while the agent works; WorkspaceError when work would be
        lost, unless forced.
    """
    made = _made(session)
    if session.runs.live().exists():
        raise RunActiveError("Stop the agent first: it is at work in these files.")
    try:
        worktrees.discard(session.pk, made, force=force)
    except OSError as error:
        raise WorkspaceError(f"The worktree can't be removed: {error}.") from error
    audit.record(
        "worktree.discarded",
        actor=actor,
        target=session,
        repository=made.repository,
        branch=made.branch,
        forced=force,
    )


def _made(session: AgentSession) -> Worktree:
    made = worktrees.load(session.pk)
    if made is None:
        raise WorkspaceError("This session has no worktree.")
    return made
