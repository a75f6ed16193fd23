"""The last request that a session's model was sent: kept, capped, and read back."""

from __future__ import annotations

import json
import zlib
from typing import Any
from uuid import UUID

from agents.models import AgentSession, ModelRequest


def keep_request(session_id: UUID, body: bytes, *, max_bytes: int) -> None:
    """Replace the kept request; over `max_bytes` (compressed) only its size is kept."""
    packed = zlib.compress(body, level=1)
    is_truncated = len(packed) > max_bytes
    if not AgentSession.objects.filter(pk=session_id).exists():
        return
    ModelRequest.objects.update_or_create(
        session_id=session_id,
        defaults={
            "body_zlib": b"" if is_truncated else packed,
            "body_bytes": len(body),
            "is_truncated": is_truncated,
        },
    )


def last_request(session_id: UUID) -> dict[str, Any] | None:
    """What the model was last sent; None where nothing (whole) is kept."""
    kept = ModelRequest.objects.filter(session_id=session_id).first()
    if kept is None or kept.is_truncated:
        return None
    try:
        body = json.loads(zlib.decompress(kept.body_zlib))
    except ValueError:  # what was sent was no JSON
        return None
    return body if isinstance(body, dict) else None


def tool_schema(session_id: UUID, tool_name: str) -> dict[str, Any] | None:
    """The JSON schema of a tool's input, as the model was given it."""
    tools = (last_request(session_id) or {}).get("tools")
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict) and tool.get("name") == tool_name:
            schema = tool.get("input_schema")
            return schema if isinstance(schema, dict) else None
    return None
