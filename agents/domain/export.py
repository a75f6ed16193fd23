"""A session as data that another site can read: every branch, with all that was decided
and what it cost.

Left out: what is this machine's (folders, the CLI's ids), what can be made again
(rendered HTML), messages that still wait in the queue, and sub-agents' own sessions,
whose words stand in the parent's transcript.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from agents.models import AgentSession, Message
from agents.models.messages import MessageRole

FORMAT = "openswarm-session"
VERSION = 1
IMPORTED_KIND = "imported"
"""The notice below an imported conversation; not a part of it."""

_SESSION = (
    *("name", "kind", "status", "mode", "model", "effort", "system_prompt"),
    *("cost_usd_micros", "cost_is_partial", "input_tokens", "output_tokens"),
    *("created_at", "updated_at", "closed_at"),
)
_BRANCH = {
    "id": "pk",
    "parent_id": "parent_branch_id",
    "fork_message_id": "fork_point_message_id",
    "created_at": "created_at",
}
_MESSAGE = {
    **{"id": "pk", "branch_id": "branch_id", "run_id": "run_id"},
    **{"author": "author__username"},
    **{
        name: name
        for name in (
            *("seq", "role", "text", "content", "tool_name", "tool_use_id"),
            *("parent_tool_use_id", "outcome", "elapsed_ms", "model", "hidden"),
            *("is_interrupted", "is_error", "attachments", "created_at"),
        )
    },
}
_RUN = {
    **{"id": "pk", "branch_id": "branch_id", "message_id": "trigger_message_id"},
    **{
        name: name
        for name in (
            *("kind", "stop_reason", "success", "steps", "model_requested"),
            *("model_actual", "error_class", "error_text", "cost_usd_micros"),
            *("input_tokens", "output_tokens", "cache_read_tokens"),
            *("cache_write_tokens", "created_at", "started_at", "finished_at"),
        )
    },
}
_APPROVAL = {
    **{"run_id": "run_id", "decided_by": "decided_by__username"},
    **{
        name: name
        for name in (
            *("kind", "tool_use_id", "tool_name", "tool_input", "reason", "status"),
            *("message", "updated_input", "scope", "created_at", "decided_at"),
        )
    },
}
_COST = {
    name: name
    for name in (
        *("message_id", "model", "agent_id", "input_tokens", "output_tokens"),
        *("cache_read_tokens", "cache_write_tokens", "usd_micros", "created_at"),
    )
}


def export_session(session: AgentSession) -> dict[str, Any]:
    """Everything as plain JSON values; five queries."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": _plain(timezone.now()),
        "session": {name: _plain(getattr(session, name)) for name in _SESSION},
        "active_branch_id": _plain(session.active_branch_id),
        "branches": _rows(session.branches.order_by("created_at", "pk"), _BRANCH),
        "messages": _rows(exported_messages(session), _MESSAGE),
        "runs": _rows(session.runs.order_by("created_at", "pk"), _RUN),
        "approvals": _rows(session.approvals.order_by("created_at", "pk"), _APPROVAL),
        "costs": _rows(session.cost_entries.order_by("created_at", "pk"), _COST),
    }


def export_json(session: AgentSession) -> str:
    return json.dumps(export_session(session), ensure_ascii=False, indent=1)


def exported_messages(session: AgentSession) -> Any:
    """All branches' messages in the order they were said."""
    return (
        Message.objects.filter(session=session)
        .delivered()
        .exclude(role=MessageRole.SYSTEM, content__kind=IMPORTED_KIND)
        .order_by("seq")
    )


def _rows(rows: Any, columns: dict[str, str]) -> list[dict[str, Any]]:
    values: Iterable[tuple[Any, ...]] = rows.values_list(*columns.values())
    names = list(columns)
    return [
        {name: _plain(value) for name, value in zip(names, row, strict=True)}
        for row in values
    ]


def _plain(value: Any) -> Any:
    match value:
        case UUID():
            return str(value)
        case datetime():
            return value.isoformat()
        case _:
            return value
