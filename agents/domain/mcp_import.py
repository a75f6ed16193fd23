"""Servers as other programs write them down: the usual `mcpServers` JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from agents.errors import InvalidInputError
from agents.models.mcp_servers import McpTransport

MAX_SERVERS = 30
_TRANSPORTS = {
    "stdio": McpTransport.STDIO,
    "http": McpTransport.HTTP,
    "streamable-http": McpTransport.HTTP,
    "streamablehttp": McpTransport.HTTP,
    "sse": McpTransport.SSE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One server as it was pasted."""

    name: str
    transport: McpTransport
    command: str = ""
    arguments: list[str] = field(default_factory=list)
    url: str = ""
    secrets: dict[str, str] = field(default_factory=dict)
    is_enabled: bool = True


def read_servers(text: str) -> list[Draft]:
    """The servers in `{"mcpServers": {name: {…}}}`, or in what stands inside.

    Raises: InvalidInputError with field `json`.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid(f"This is not valid JSON: {error}") from error
    found = content
    for key in ("mcpServers", "servers"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            found = content[key]
    if not isinstance(found, dict) or not found:
        raise _invalid('Expected {"mcpServers": {"name": {…}}}.')
    if len(found) > MAX_SERVERS:
        raise _invalid(f"At most {MAX_SERVERS} servers at once.")
    return [_draft(str(name), entry) for name, entry in found.items()]


def _draft(name: str, entry: Any) -> Draft:
    if not isinstance(entry, dict):
        raise _invalid(f"{name}: expected an object.")
    url = _text(name, entry, "url") or _text(name, entry, "serverUrl")
    kind = _text(name, entry, "type") or _text(name, entry, "transport")
    transport = _TRANSPORTS.get(
        kind.lower() or ("http" if url else "stdio"),
    )
    if transport is None:
        raise _invalid(f"{name}: “{kind}” is not a transport. Use stdio, http or sse.")
    is_program = transport == McpTransport.STDIO
    return Draft(
        name=name,
        transport=transport,
        command=_text(name, entry, "command"),
        arguments=_texts(name, entry.get("args", [])),
        url=url,
        secrets=_pairs(name, entry.get("env" if is_program else "headers", {})),
        is_enabled=entry.get("disabled") is not True,
    )


def _text(name: str, entry: dict[str, Any], key: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise _invalid(f"{name}: “{key}” is not a text.")
    return value


def _texts(name: str, values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise _invalid(f"{name}: “args” is not a list of texts.")
    return values


def _pairs(name: str, values: Any) -> dict[str, str]:
    if not isinstance(values, dict) or not all(
        isinstance(value, str | int | float) for value in values.values()
    ):
        raise _invalid(f"{name}: “env” and “headers” hold a text for each name.")
    return {key: str(value) for key, value in values.items()}


def _invalid(sentence: str) -> InvalidInputError:
    return InvalidInputError(sentence, field="json")
