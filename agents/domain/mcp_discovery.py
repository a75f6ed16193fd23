"""What was found when a server was asked for its tools, and what went wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agents.models import McpServer, McpTool
from agents.models.mcp_servers import McpPolicy, McpStatus
from agents.rendering.text import clean_json, clean_text

MAX_TOOLS = 300
MAX_DESCRIPTION_CHARACTERS = 8_000
MAX_SCHEMA_BYTES = 64 * 1024
MAX_INSTRUCTIONS_CHARACTERS = 8_000
MAX_NAME_CHARACTERS = 200
_OFFERED_CHARACTERS = 64
_EMPTY_SCHEMA = {"type": "object"}


@dataclass(frozen=True, slots=True)
class FoundTool:
    name: str
    description: str
    input_schema: dict[str, Any]
    annotations: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Report:
    """How a connection stands: it works and has these tools, or why it doesn't."""

    status: McpStatus
    reason: str = ""
    stderr_tail: str = ""
    instructions: str = ""
    tools: Sequence[FoundTool] = field(default=())


@transaction.atomic
def record_report(server_id: UUID, generation: int, report: Report) -> None:
    """Write down how a connection stands; what an older one says counts no longer."""
    servers = McpServer.objects.select_for_update().filter(
        pk=server_id, generation=generation
    )
    server = servers.first()
    if server is None:
        return
    server.status = report.status
    server.reason = clean_text(report.reason)
    server.stderr_tail = clean_text(report.stderr_tail)
    server.checked_at = timezone.now()
    changed = ["status", "reason", "stderr_tail", "checked_at"]
    if report.status == McpStatus.CONNECTED:
        server.instructions = clean_text(report.instructions)[
            :MAX_INSTRUCTIONS_CHARACTERS
        ]
        changed.append("instructions")
        _take_over(server, report.tools)
    server.save(update_fields=changed)


def _take_over(server: McpServer, found: Iterable[FoundTool]) -> None:
    usable = {tool.name: _cleaned(tool) for tool in found if _is_usable(tool)}
    known = {tool.name: tool for tool in server.tools.all()}
    taken = {tool.offered_name for tool in known.values()}
    for name in sorted(usable)[:MAX_TOOLS]:
        tool = known.pop(name, None)
        if tool is None:
            offered = _offered_name(name, taken)
            taken.add(offered)
            tool = McpTool(server=server, name=name, offered_name=offered)
        _update(tool, usable[name])
    server.tools.filter(name__in=known).update(is_listed=False)


def _update(tool: McpTool, found: FoundTool) -> None:
    """A tool that becomes another one is not allowed because the old one was."""
    before = tool.definition
    tool.description = found.description
    tool.input_schema = found.input_schema
    tool.annotations = found.annotations
    is_new = tool._state.adding
    is_changed = tool.definition != before
    if is_changed and not is_new and tool.policy == McpPolicy.ALWAYS_ALLOW:
        tool.policy = McpPolicy.ASK
    if is_new or is_changed or not tool.is_listed:
        tool.is_listed = True
        tool.save()


def _is_usable(tool: FoundTool) -> bool:
    size = len(json.dumps(tool.input_schema, ensure_ascii=True))
    return 0 < len(tool.name) <= MAX_NAME_CHARACTERS and size <= MAX_SCHEMA_BYTES


def _cleaned(tool: FoundTool) -> FoundTool:
    return FoundTool(
        name=clean_text(tool.name),
        description=clean_text(tool.description)[:MAX_DESCRIPTION_CHARACTERS],
        input_schema=clean_json(tool.input_schema) or _EMPTY_SCHEMA,
        annotations=clean_json(tool.annotations),
    )


def _offered_name(name: str, taken: set[str]) -> str:
    """With letters that the model's API takes; numbered where two become one."""
    base = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_OFFERED_CHARACTERS]
    offered, number = base, 1
    while offered in taken:
        number += 1
        end = f"_{number}"
        offered = base[: _OFFERED_CHARACTERS - len(end)] + end
    return offered
