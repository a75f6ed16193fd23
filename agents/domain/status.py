"""The one place where a session's status, and its sub-agents', is derived."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F
from django.utils import timezone

from agents.events.bus import publish_on_commit
from agents.events.vocabulary import StatusChanged
from agents.models import AgentSession, ApprovalRequest, Message, Run
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.runs import LIVE_STATES, RunState, StopReason
from agents.models.sessions import ACTIVE_STATUSES, SessionStatus
from agents.rendering.text import preview

from .endings import WHOLE

_AFTER = {
    StopReason.NO_TOOL_CALLS: SessionStatus.COMPLETED,
    StopReason.COMPLETE_TASK: SessionStatus.COMPLETED,
    StopReason.ERROR: SessionStatus.ERROR,
    StopReason.CONTEXT_LIMIT: SessionStatus.ERROR,
    StopReason.TOO_MANY_FAILURES: SessionStatus.ERROR,
}
PREVIEW_CHARACTERS = 120
# A sub-agent's end is the result of the call that started it.
_AFTER_CALL = {
    ToolOutcome.OK: SessionStatus.COMPLETED,
    ToolOutcome.ERROR: SessionStatus.ERROR,
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
    if run.stop_reason in WHOLE and run.success is False:
        return SessionStatus.ERROR  # a failed step that nothing made good
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
    refresh_sub_agents(session_id)
    if _store(session_id, status) or always_publish:
        publish_on_commit(StatusChanged(session_id=session_id, status=status))
    return status


def _store(session_id: UUID, status: SessionStatus) -> int:
    others = AgentSession.objects.filter(pk=session_id).exclude(status=status)
    return others.update(status=status, updated_at=timezone.now())


def refresh_sub_agents(host_id: UUID) -> None:
    """Bring those that are at work in line with their host's rows.

    Called under the host's lock by whoever changed a run, an approval or the result
    of a call; what has ended stays as it ended.
    """
    at_work = AgentSession.objects.filter(
        host_session_id=host_id, status__in=ACTIVE_STATUSES
    )
    for sub_agent in at_work:
        status = derive_sub_agent_status(sub_agent)
        if _store(sub_agent.pk, status):
            _sum_up(sub_agent)
            publish_on_commit(StatusChanged(session_id=sub_agent.pk, status=status))


def _sum_up(sub_agent: AgentSession) -> None:
    """How much it said and what it said last, as lists show it."""
    rows = Message.objects.filter(
        session_id=sub_agent.host_session_id,
        parent_tool_use_id=sub_agent.parent_tool_use_id,
    )
    said = rows.filter(role=MessageRole.ASSISTANT).exclude(text="").order_by("-seq")
    last = said.values_list("text", flat=True).first() or ""
    AgentSession.objects.filter(pk=sub_agent.pk).update(
        message_count=rows.count(), last_preview=preview(last, PREVIEW_CHARACTERS)
    )


def derive_sub_agent_status(sub_agent: AgentSession) -> SessionStatus:
    """Its own requests first, then its call's result, then whether its run goes on."""
    host_id = sub_agent.host_session_id
    pending = ApprovalRequest.objects.filter(
        session_id=host_id, agent_id=sub_agent.agent_id
    ).pending()
    if pending.exists():
        return SessionStatus.WAITING_APPROVAL
    call = Message.objects.filter(
        session_id=host_id, tool_use_id=sub_agent.parent_tool_use_id
    )
    outcome = call.filter(role=MessageRole.TOOL_RESULT).values_list(
        "outcome", flat=True
    )
    if ended := outcome.first():
        return _AFTER_CALL.get(ToolOutcome(ended), SessionStatus.STOPPED)
    if call.filter(run__state__in=LIVE_STATES).exists():
        return SessionStatus.RUNNING
    return SessionStatus.STOPPED
