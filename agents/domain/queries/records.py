"""Sessions, messages and approvals as programs read them: rows, not cards."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import QuerySet

from agents.domain.subagents import rows_of
from agents.models import AgentSession, ApprovalRequest, Message, SessionEvent, User
from agents.models.approvals import ApprovalRequestQuerySet

from .branches import lineage, within


def session_records(user: User) -> QuerySet[AgentSession]:
    """Top-level sessions that the person may see, newest first."""
    return (
        AgentSession.objects.visible_to(user)
        .filter(parent_session=None)
        .select_related("owner", "host_session")
        .defer("system_prompt")
        .order_by("-updated_at", "-pk")
    )


def message_records(session: AgentSession) -> QuerySet[Message]:
    """What the shown branch holds, and what waits to be delivered; oldest first.

    Of a sub-agent it is what its host's rows say of it.
    """
    if session.is_sub_agent:
        rows = rows_of(session)
    else:
        stretches = lineage(session.pk, session.active_branch_id)
        rows = Message.objects.filter(within(stretches), session_id=session.pk)
    return rows.filter(hidden=False).select_related("author").order_by("seq")


def approval_records(user: User) -> ApprovalRequestQuerySet:
    """Everything that was asked where the person may look, oldest first."""
    visible = ApprovalRequest.objects.visible_to(user)
    return visible.select_related("decided_by").order_by("created_at", "pk")


def events_after(session_id: UUID, seq: int, limit: int) -> list[SessionEvent]:
    newer = SessionEvent.objects.filter(session_id=session_id, seq__gt=seq)
    return list(newer.order_by("seq")[:limit])


def messages_by_id(message_ids: Iterable[str]) -> dict[str, Message]:
    """Without those that no page shows either."""
    shown = Message.objects.filter(pk__in=list(message_ids), hidden=False)
    found = shown.select_related("author")
    return {str(message.pk): message for message in found}


def approvals_by_id(approval_ids: Iterable[str]) -> dict[str, ApprovalRequest]:
    found = ApprovalRequest.objects.filter(pk__in=list(approval_ids))
    return {str(each.pk): each for each in found.select_related("decided_by")}


def open_streams(session_id: UUID) -> list[UUID]:
    """The messages that are being written right now."""
    rows = Message.objects.filter(session_id=session_id, is_streaming=True)
    return list(rows.values_list("pk", flat=True))
