"""The one place where a session's status is derived."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F
from django.utils import timezone

from agents.events.bus import publish_on_commit
from agents.events.vocabulary import StatusChanged
from agents.models import AgentSession, ApprovalRequest, Run
from agents.models.runs import LIVE_STATES, RunState, StopReason
from agents.models.sessions import SessionStatus

_AFTER = {
    StopReason.NO_TOOL_CALLS: SessionStatus.COMPLETED,
    StopReason.COMPLETE_TASK: SessionStatus.COMPLETED,
    StopReason.ERROR: SessionStatus.ERROR,
    StopReason.CONTEXT_LIMIT: SessionStatus.ERROR,
    StopReason.TOO_MANY_FAILURES: SessionStatus.ERROR,
}


def derive_status(session_id: UUID) -> SessionStatus:
    """Pending approvals first, then the unfinished run, then the last outcome."""
    if ApprovalRequest.objects.filter(session_id=session_id).pending().exists():
        return SessionStatus.WAITING_APPROVAL
    # Not by created_at alone: a clock that was set back must not hide what runs now.
    latest = F("finished_at").desc(nulls_first=True), "-created_at"
    run = Run.objects.filter(session_id=session_id).order_by(*latest).first()
    if run is not None and run.state in LIVE_STATES:
        return SessionStatus.RUNNING
    if run is not None and run.state != RunState.FINISHED:
        return SessionStatus.QUEUED
    if AgentSession.objects.filter(pk=session_id, is_resumed=True).exists():
        return SessionStatus.STOPPED
    if run is None:
        return SessionStatus.IDLE
    return _AFTER.get(StopReason(run.stop_reason), SessionStatus.STOPPED)


def publish_status(session_id: UUID) -> None:
    """Tell everybody to look again: something that stands beside the status changed."""
    status = AgentSession.objects.values_list("status", flat=True).get(pk=session_id)
    publish_on_commit(StatusChanged(session_id=session_id, status=status))


def refresh_status(session_id: UUID, *, always_publish: bool = False) -> SessionStatus:
    """Store the derived status and tell everybody when it changed.

    Must be called inside the transaction that changed what it derives from.
    """
    status = derive_status(session_id)
    changed = (
        AgentSession.objects.filter(pk=session_id)
        .exclude(status=status)
        .update(status=status, updated_at=timezone.now())
    )
    if changed or always_publish:
        publish_on_commit(StatusChanged(session_id=session_id, status=status))
    return status
