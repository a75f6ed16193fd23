"""The end of sessions, and the way back: close, resume, delete; stop and start-up.

The names are `sessions.close_session` and so on; they stand here because each touches
the whole tree of child sessions.
"""

from __future__ import annotations

from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from agents.errors import NotAllowedError
from agents.events.bus import (
    engine_group,
    publish_gone_on_commit,
    publish_on_commit,
    ring_on_commit,
)
from agents.events.vocabulary import SessionClosed, SessionDeleted, SessionResumed
from agents.models import (
    AgentSession,
    AuditEntry,
    MessageBranch,
    TranscriptEntry,
    User,
)
from agents.models.sessions import SessionKind

from . import analytics, audit, runs
from .locks import check_is_no_sub_agent, lock_session
from .status import publish_status, refresh_status
from .transcripts import has_transcript

DELETED = "session.deleted"


def get_all_sessions(user: User) -> QuerySet[AgentSession]:
    """The open sessions that this person may see, newest first."""
    visible = AgentSession.objects.visible_to(user)
    return visible.filter(closed_at=None).recent_first()


def get_session(user: User, session_id: UUID) -> AgentSession | None:
    """The session, open or closed, if this person may see it."""
    return AgentSession.objects.visible_to(user).filter(pk=session_id).first()


def get_browser_agent_children(session: AgentSession) -> QuerySet[AgentSession]:
    return session.children.filter(kind=SessionKind.BROWSER_AGENT).order_by(
        "created_at"
    )


def tree_ids(session_id: UUID) -> list[UUID]:
    """The session and all below it, the deepest first; one query per level."""
    levels = [[session_id]]
    while levels[-1]:
        children = AgentSession.objects.filter(parent_session__in=levels[-1])
        levels.append(list(children.values_list("pk", flat=True)))
    return [each for level in reversed(levels) for each in level]


def _lock_tree(session_id: UUID) -> list[AgentSession]:
    """Locked from the top down, as everybody does; handed out the deepest first."""
    return [lock_session(each) for each in reversed(tree_ids(session_id))][::-1]


@transaction.atomic
def close_session(session: AgentSession, user: User) -> None:
    """Stop what runs in the whole tree and put it away; `resume_session` undoes it.

    Closing what is closed changes nothing.

    Raises: SubAgentError.
    """
    check_is_no_sub_agent(session)
    for each in _lock_tree(session.pk):
        _close(each, user)
    session.refresh_from_db()


def _close(session: AgentSession, user: User) -> None:
    runs.stop_agent(session)
    if session.closed_at is not None:
        return
    AgentSession.objects.filter(pk=session.pk).update(closed_at=timezone.now())
    session.refresh_from_db()
    audit.record("session.closed", actor=user, target=session)
    analytics.fire_session_completed(session)
    publish_on_commit(SessionClosed(session_id=session.pk, status=session.status))


@transaction.atomic
def resume_session(session: AgentSession, user: User) -> bool:
    """Open a closed session again, as stopped; nothing runs until somebody writes.

    Its child sessions stay closed: they answered their calls. Its sub-agents are a
    part of it.

    Returns: False when it was open.
    """
    locked = lock_session(session.pk)
    check_is_no_sub_agent(locked)
    if locked.closed_at is None:
        return False
    locked.guests.update(closed_at=None)
    AgentSession.objects.filter(pk=session.pk).update(
        closed_at=None, is_resumed=True, updated_at=timezone.now()
    )
    refresh_status(session.pk)
    analytics.session_resumed(locked, locked.closed_at, user)
    audit.record("session.resumed", actor=user, target=session)
    session.refresh_from_db()
    publish_on_commit(SessionResumed(session_id=session.pk, status=session.status))
    return True


@transaction.atomic
def pin_session(session: AgentSession, *, pinned: bool) -> None:
    changed = AgentSession.objects.filter(pk=session.pk).exclude(pinned=pinned)
    if changed.update(pinned=pinned):
        publish_status(session.pk)
    session.pinned = pinned


@transaction.atomic
def delete_session(session: AgentSession, user: User) -> None:
    """Delete the session and all below it for good; only its owner may.

    Its rows are gone with the commit. A process that still works for it finds its
    lease lost and stops; then the engine removes what it wrote late, and the files
    (`execution/cleaning.py`). What stays is the audit's
    word that it was deleted, and the ledger's of what it cost.

    Raises: NotAllowedError, SubAgentError.
    """
    check_is_no_sub_agent(session)
    if session.owner_id != user.pk:
        raise NotAllowedError("Only its owner may delete a session.")
    for each in _lock_tree(session.pk):
        _delete(each, user)


def _delete(session: AgentSession, user: User) -> None:
    publish_gone_on_commit(SessionDeleted(session_id=session.pk))
    conversations = _conversations(session)
    audit.record(
        DELETED,
        actor=user,
        target=session,
        owner_id=str(session.owner_id),
        conversations=conversations,
    )
    forget_conversations(session.pk, conversations)
    session.delete()
    ring_on_commit(engine_group(), {"type": "engine.clean_up"})


def _conversations(session: AgentSession) -> list[str]:
    """The SDK's sessions of all branches, and of deleted ones that they began from."""
    own: set[UUID] = set()
    sources: set[UUID] = set()
    branches = MessageBranch.objects.filter(session=session)
    for own_id, source_id in branches.values_list(
        "sdk_session_id", "sdk_fork_session_id"
    ):
        own.add(own_id)
        if source_id is not None:
            sources.add(source_id)
    alive = MessageBranch.objects.filter(sdk_session_id__in=sources)
    sources -= set(alive.values_list("sdk_session_id", flat=True))
    return sorted(str(each) for each in own | sources)


def forget_conversations(session_id: UUID, conversations: list[str]) -> None:
    """Delete the SDK's transcripts; they hang on no session, so nothing cascades.

    By their ids and by the workspace, under whose name the SDK files them. One that a
    copy of the session has yet to begin from stays, and goes with that copy.
    """
    needed = {
        str(source_id)
        for own_id, source_id in MessageBranch.objects.filter(
            sdk_fork_session_id__in=conversations
        )
        .exclude(session_id=session_id)
        .values_list("sdk_session_id", "sdk_fork_session_id")
        if not has_transcript(own_id)
    }
    TranscriptEntry.objects.filter(
        Q(sdk_session_id__in=conversations) | Q(project_key__endswith=str(session_id))
    ).exclude(sdk_session_id__in=needed).delete()


def forget_pages() -> None:
    """Have SQLite give up the journal pages that still hold what was deleted.

    While somebody reads, it keeps what they need; then the next checkpoint does it.
    """
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def deleted_among(session_ids: set[UUID]) -> dict[UUID, list[str]]:
    """Which of these sessions were deleted, with their conversations.

    Asked with the ids of folders that are there: as long as one is, there is
    something to do.
    """
    deleted = AuditEntry.objects.filter(
        action=DELETED, target_id__in=[str(each) for each in session_ids]
    )
    return {
        UUID(target_id): data.get("conversations", [])
        for target_id, data in deleted.values_list("target_id", "data")
    }


def without_row(session_ids: set[UUID]) -> set[UUID]:
    known = AgentSession.objects.filter(pk__in=session_ids)
    return session_ids - set(known.values_list("pk", flat=True))


def persist_all_sessions(worker: str) -> int:
    """The graceful stop, over rows: settle what `worker` could not end in time.

    All else is in the database already.

    Returns: how many runs were settled.
    """
    return runs.settle_runs_of(worker)


def restore_all_sessions() -> int:
    """The start-up, over rows: nobody else is alive, so what still runs is settled.

    Returns: how many runs were settled.
    """
    return runs.reconcile_on_startup()
