"""Locks: one session's writers go one after the other.

Every transaction that writes several rows of a session takes this lock first, before
any other row. With one order there are no deadlocks, and what is read under the lock
stays true until the commit.
"""

from __future__ import annotations

from uuid import UUID

from agents.errors import (
    LeaseLostError,
    SessionClosedError,
    SessionGoneError,
    SubAgentError,
)
from agents.models import AgentSession, Run


def lock_session(session_id: UUID) -> AgentSession:
    """Serialise writers of one session until the transaction ends.

    `no_key`: rows that point at the session may be inserted meanwhile.

    Raises: SessionGoneError when it was deleted.
    """
    try:
        return AgentSession.objects.select_for_update(no_key=True).get(pk=session_id)
    except AgentSession.DoesNotExist:
        raise SessionGoneError from None


def lock_open_session(session_id: UUID) -> AgentSession:
    """Lock a session in order to go on with it.

    Raises: SessionClosedError, SessionGoneError, SubAgentError.
    """
    session = lock_session(session_id)
    check_is_no_sub_agent(session)
    if session.closed_at is not None:
        raise SessionClosedError
    return session


def check_is_no_sub_agent(session: AgentSession) -> None:
    """Raises: SubAgentError; what is done with its host counts for a sub-agent."""
    if session.is_sub_agent:
        raise SubAgentError


def lock_run(run: Run) -> AgentSession:
    """Lock the session of `run`, which must still be whose it was when read.

    Raises: LeaseLostError when it ended, or another worker took it over.
    """
    session = lock_session(run.session_id)
    if not Run.objects.still_of(run).exists():
        raise LeaseLostError("Another worker took over this run.")
    return session
