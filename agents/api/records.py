"""What programs are sent: sessions, messages, approvals."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from ninja import Schema

from agents.conf import conf
from agents.models import AgentSession, ApprovalRequest, Message
from agents.models.messages import MessageRole

MICROS = 1_000_000
_TOOL_ROLES = (MessageRole.TOOL_CALL, MessageRole.TOOL_RESULT)


class SessionSummary(Schema):
    id: UUID
    name: str
    status: str
    kind: str
    owner: str
    mode: str
    model: str
    effort: str
    security_mode: str
    network: str
    provider_id: UUID | None
    max_steps: int | None
    max_budget_usd: float | None
    temperature: float | None
    parent_session_id: UUID | None
    branch_id: UUID | None
    last_event_id: int
    queue_paused: bool
    cost_usd: float
    cost_is_partial: bool
    input_tokens: int
    output_tokens: int
    message_count: int
    preview: str
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None


class SessionOut(SessionSummary):
    system_prompt: str


_AS_THEY_ARE = (
    *("id", "name", "status", "kind", "mode", "model", "effort", "security_mode"),
    *("network", "provider_id", "max_steps", "temperature", "parent_session_id"),
    *("queue_paused", "cost_is_partial", "input_tokens", "output_tokens"),
    *("message_count", "created_at", "updated_at", "closed_at"),
)


def session_summary(session: AgentSession) -> dict[str, Any]:
    budget = session.max_budget_usd_micros
    return {
        **{name: getattr(session, name) for name in _AS_THEY_ARE},
        "owner": session.owner.get_username(),
        "branch_id": session.active_branch_id,
        "last_event_id": session.shown_seq,
        "max_budget_usd": None if budget is None else budget / MICROS,
        "cost_usd": session.cost_usd_micros / MICROS,
        "preview": session.last_preview,
    }


def session_record(session: AgentSession) -> dict[str, Any]:
    return {**session_summary(session), "system_prompt": session.system_prompt}


class MessageOut(Schema):
    id: UUID
    seq: int
    session_id: UUID
    branch_id: UUID
    run_id: UUID | None
    role: str
    text: str
    content: dict[str, Any]
    is_truncated: bool
    """Whether a tool's text or content was too long for this answer."""
    tool_name: str
    tool_use_id: str
    parent_tool_use_id: str
    outcome: str
    is_error: bool
    is_streaming: bool
    is_interrupted: bool
    is_queued: bool
    elapsed_ms: int | None
    model: str
    author: str | None
    client_message_id: UUID | None
    created_at: datetime


_OF_MESSAGE = (
    *("id", "seq", "session_id", "branch_id", "run_id", "role", "tool_name"),
    *("tool_use_id", "parent_tool_use_id", "outcome", "is_error", "is_streaming"),
    *("is_interrupted", "elapsed_ms", "model", "client_message_id", "created_at"),
)


def message_record(message: Message, *, whole: bool = False) -> dict[str, Any]:
    """What people and models wrote is always whole; of tools only with `whole`."""
    text, content, is_truncated = message.text, message.content, False
    if message.role in _TOOL_ROLES and not whole:
        limit = conf().message_preview_bytes
        is_truncated = len(text) > limit
        text = text[:limit]
        if len(json.dumps(content)) > limit:
            content, is_truncated = {}, True
    return {
        **{name: getattr(message, name) for name in _OF_MESSAGE},
        "text": text,
        "content": content,
        "is_truncated": is_truncated,
        "is_queued": message.queued_at is not None and message.delivered_at is None,
        "author": message.author.get_username() if message.author else None,
    }


class ApprovalOut(Schema):
    id: UUID
    session_id: UUID
    kind: str
    status: str
    tool_name: str
    tool_use_id: str
    tool_input: dict[str, Any]
    reason: str
    updated_input: dict[str, Any] | None
    message: str
    scope: str
    decided_by: str | None
    decided_at: datetime | None
    expires_at: datetime
    created_at: datetime


_OF_APPROVAL = (
    *("id", "session_id", "kind", "status", "tool_name", "tool_use_id", "tool_input"),
    *("reason", "updated_input", "message", "scope", "decided_at", "expires_at"),
    "created_at",
)


def approval_record(approval: ApprovalRequest) -> dict[str, Any]:
    by = approval.decided_by
    return {
        **{name: getattr(approval, name) for name in _OF_APPROVAL},
        "decided_by": by.get_username() if by else None,
    }
