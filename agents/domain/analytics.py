"""Analytics: what happened, as rows of this database that are sent nowhere.

Each is written in the transaction of what it tells of, and goes with its session. No
content of messages stands in them, but for the session's name and the first 200
characters of its first message in `session.completed`, which the seeds name. What is
the same for all rows of a site (its operating system, say) is not repeated in them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.db.models.functions import Length
from django.utils import timezone

from agents.models import (
    AgentSession,
    AnalyticsEvent,
    ApprovalRequest,
    Message,
    Run,
    User,
)
from agents.models.messages import MessageRole
from agents.policy.tools import get_all_tool_names

from .providers import provider_for
from .subagents import rows_of
from .tracking import new_event
from .tracking import record as record

FIRST_MESSAGE_CHARACTERS = 200
_URL = re.compile(r"https?://\S")


def session_started(session: AgentSession) -> None:
    record(
        "session.started",
        session=session,
        **_setting_of(session),
        tool_count=len(_tools_of(session)),
    )


def _setting_of(session: AgentSession) -> dict[str, Any]:
    return {
        "model": session.model,
        "provider": provider_for(session).kind,
        "mode": session.mode,
    }


def _tools_of(session: AgentSession) -> list[str]:
    allowed: list[str] | None = session.allowed_tools
    return get_all_tool_names() if allowed is None else allowed


def message_sent(session: AgentSession, message: Message) -> None:
    """What came with a person's message, and once what the first one was like."""
    _context_attached(session, message.attachments)
    others = session.messages.filter(role=MessageRole.USER, hidden=False)
    if others.exclude(pk=message.pk).exists():
        return
    record(
        "session.first_message",
        session=session,
        user=message.author,
        message_length=len(message.text),
        has_code_block="```" in message.text,
        has_url=bool(_URL.search(message.text)),
        model=message.model or session.model,
        mode=session.mode,
    )


def _context_attached(session: AgentSession, attachments: dict[str, Any]) -> None:
    paths = [part for part in attachments.get("context_paths") or [] if part]
    folders = sum(_is_folder(path) for path in paths)
    skills = attachments.get("skills") or []
    counts: dict[str, Any] = {
        "file_count": len(paths) - folders,
        "directory_count": folders,
        "skill_count": len(skills),
        "image_count": len(attachments.get("images") or []),
        "has_forced_tools": bool(attachments.get("forced_tools")),
    }
    if any(counts.values()):
        record("context.attached", session=session, **counts)
    for skill in skills:
        name = skill.get("name", "") if isinstance(skill, dict) else str(skill)
        feature_used(session, "skill.used", skill_name=name)


def _is_folder(path: Any) -> bool:
    if isinstance(path, dict):
        return path.get("type") == "directory"
    return str(path).endswith("/")


def feature_used(session: AgentSession, feature: str, **data: Any) -> None:
    record("feature.used", session=session, feature=feature, **data)


def model_switched(
    session: AgentSession, before: AgentSession, *, user: User | None = None
) -> None:
    """`before` is the session as it was."""
    record(
        "model.switched",
        session=session,
        user=user,
        from_model=before.model,
        to_model=session.model,
        from_provider=provider_for(before).kind,
        to_provider=provider_for(session).kind,
        message_number=session.messages.filter(role=MessageRole.USER).count(),
        cost_so_far=_usd(session.cost_usd_micros),
    )


def turn_completed(run: Run) -> None:
    """A turn ended, however it did, with every tool call that it made."""
    session = run.session
    results = (
        run.messages.filter(role=MessageRole.TOOL_RESULT)
        .annotate(length=Length("text"))
        .values_list("tool_name", "elapsed_ms", "length", "outcome")
    )
    events = [
        new_event(
            "tool.executed",
            session,
            None,
            {
                "tool_name": tool_name,
                "mcp_server": _mcp_server(tool_name),
                "duration_ms": elapsed_ms,
                "content_length": length,
                "outcome": outcome,
            },
        )
        for tool_name, elapsed_ms, length, outcome in results
    ]
    facts = {"model": run.model_actual or run.model_requested, "mode": session.mode}
    events.append(
        new_event(
            "turn.completed",
            session,
            None,
            {
                **facts,
                "stop_reason": run.stop_reason,
                "success": bool(run.success),
                "steps": run.steps,
                "tool_count": len(events),
                "duration_seconds": _seconds(run.started_at, run.finished_at),
                "cost_usd": _usd(run.cost_usd_micros),
                "input_tokens": run.input_tokens,
                "output_tokens": run.output_tokens,
            },
        )
    )
    if run.error_class:
        error = {**facts, "error_class": run.error_class, "steps": run.steps}
        events.append(new_event("session.error", session, None, error))
    AnalyticsEvent.objects.bulk_create(events)


def _mcp_server(tool_name: str) -> str:
    kind, _, rest = tool_name.partition("__")
    return rest.partition("__")[0] if kind == "mcp" else ""


def approval_requested(approval: ApprovalRequest) -> None:
    if not approval.track_analytics:
        return
    session = approval.session
    earlier = session.approvals.exclude(pk=approval.pk)
    record(
        "approval.requested",
        session=session,
        tool_name=approval.tool_name,
        is_first_approval_in_session=not earlier.exists(),
        model=session.model,
    )


def approval_resolved(approval: ApprovalRequest) -> None:
    if not approval.track_analytics:
        return
    decided_at = approval.decided_at or timezone.now()
    latency = decided_at - approval.created_at
    record(
        "approval.resolved",
        session=approval.session,
        user=approval.decided_by,
        tool_name=approval.tool_name,
        decision=approval.status,
        latency_ms=int(latency.total_seconds() * 1000),
        input_was_modified=approval.updated_input is not None,
    )


def session_resumed(session: AgentSession, closed_at: datetime, user: User) -> None:
    hours = (timezone.now() - closed_at).total_seconds() / 3600
    record(
        "session.resumed",
        session=session,
        user=user,
        hours_since_closed=round(hours, 1),
        original_message_count=session.message_count,
        original_cost_usd=_usd(session.cost_usd_micros),
        model=session.model,
    )


def fire_session_completed(session: AgentSession) -> None:
    """The whole session in one event; when it closes, each time it does."""
    rows = rows_of(session)
    calls = rows.filter(role=MessageRole.TOOL_CALL)
    tools = Counter(calls.values_list("tool_name", flat=True))
    messages = rows.filter(hidden=False)
    children = list(session.children.values_list("pk", flat=True))
    record(
        "session.completed",
        session=session,
        **_setting_of(session),
        status=session.status,
        cost_usd=_usd(session.cost_usd_micros),
        input_tokens=session.input_tokens,
        output_tokens=session.output_tokens,
        message_count=messages.filter(
            Q(role=MessageRole.USER) | Q(role=MessageRole.ASSISTANT)
        ).count(),
        duration_seconds=_seconds(session.created_at, session.closed_at),
        tool_count=sum(tools.values()),
        tools_list=sorted(tools),
        tool_counts=dict(tools),
        session_title=session.name,
        first_user_message=_first_message(session),
        is_sub_agent=session.is_sub_agent,
        parent_session_id=session.parent_session_id,
        sub_agent_count=len(children),
        sub_agent_ids=children,
        branch_count=session.branches.count(),
    )


def _first_message(session: AgentSession) -> str:
    said = session.messages.filter(role=MessageRole.USER, hidden=False)
    text = said.order_by("seq").values_list("text", flat=True).first() or ""
    return text[:FIRST_MESSAGE_CHARACTERS]


def settings_changed(user: User, changed: Iterable[str]) -> None:
    """Which preferences changed; never what they are now."""
    if keys := sorted(changed):
        record("settings.changed", user=user, changed_keys=keys)


def _seconds(start: datetime | None, end: datetime | None) -> float:
    if start is None:
        return 0.0
    return round(((end or timezone.now()) - start).total_seconds(), 1)


def _usd(micros: int) -> float:
    return micros / 1_000_000
