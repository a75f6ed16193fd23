"""What the model saw: the last request of a session, taken apart for a page.

Everything is shown as it was sent. Only what fills screens is cut, and the page leads
to the whole request as a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from agents.domain.requests import last_request
from agents.models import AgentSession, ModelRequest

MAX_SHOWN_CHARACTERS: Final = 20_000
_PARTS = {"system", "messages", "tools"}


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a message or of the system prompt."""

    kind: str
    text: str
    characters: int
    """Of all of it; more than are shown where it is cut."""
    is_cached: bool = False
    """Whether the provider was asked to keep everything up to here."""

    @property
    def is_cut(self) -> bool:
        return len(self.text) < self.characters


@dataclass(frozen=True, slots=True)
class SentMessage:
    role: str
    blocks: tuple[Block, ...]

    @property
    def characters(self) -> int:
        return sum(block.characters for block in self.blocks)


@dataclass(frozen=True, slots=True)
class SentTool:
    name: str
    description: str
    schema: str
    characters: int


@dataclass(frozen=True, slots=True)
class ModelContext:
    sent_at: datetime
    size_bytes: int
    is_truncated: bool = False
    """Whether it was too large to be kept, so that only its size is known."""
    settings: tuple[tuple[str, str], ...] = ()
    system: tuple[Block, ...] = ()
    messages: tuple[SentMessage, ...] = ()
    tools: tuple[SentTool, ...] = ()

    @property
    def system_characters(self) -> int:
        return sum(block.characters for block in self.system)

    @property
    def message_characters(self) -> int:
        return sum(message.characters for message in self.messages)

    @property
    def tool_characters(self) -> int:
        return sum(tool.characters for tool in self.tools)


def get_context(session: AgentSession) -> ModelContext | None:
    """Of the session's last request; None before the first."""
    kept = (
        ModelRequest.objects.filter(session=session.host_id).defer("body_zlib").first()
    )
    if kept is None:
        return None
    body = last_request(session.host_id)
    if body is None:
        return ModelContext(kept.created_at, kept.body_bytes, is_truncated=True)
    return ModelContext(
        sent_at=kept.created_at,
        size_bytes=kept.body_bytes,
        settings=tuple(_settings(body)),
        system=tuple(_blocks(body.get("system"))),
        messages=tuple(_messages(body.get("messages"))),
        tools=tuple(_tools(body.get("tools"))),
    )


def _settings(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in body.items():
        if name not in _PARTS:
            yield name, value if isinstance(value, str) else _json(value)


def _messages(messages: Any) -> Iterator[SentMessage]:
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, Mapping):
            blocks = tuple(_blocks(message.get("content")))
            yield SentMessage(str(message.get("role")), blocks)


def _blocks(content: Any) -> Iterator[Block]:
    if isinstance(content, str):
        yield _block("text", content)
        return
    for part in content if isinstance(content, list) else []:
        if isinstance(part, Mapping):
            is_cached = "cache_control" in part
            yield _block(str(part.get("type")), _text_of(part), is_cached=is_cached)


def _block(kind: str, text: str, *, is_cached: bool = False) -> Block:
    return Block(kind, text[:MAX_SHOWN_CHARACTERS], len(text), is_cached)


def _text_of(part: Mapping[str, Any]) -> str:
    """What a reader wants to see of a block, whatever its kind."""
    match part.get("type"):
        case "text":
            return str(part.get("text"))
        case "thinking":
            return str(part.get("thinking"))
        case "tool_use":
            return f"{part.get('name')} {_json(part.get('input'))}"
        case "tool_result":
            return "\n".join(block.text for block in _blocks(part.get("content")))
        case "image" | "document":
            return _describe_file(part.get("source"))
        case _:
            return _json({k: v for k, v in part.items() if k != "cache_control"})


def _describe_file(source: Any) -> str:
    if not isinstance(source, Mapping):
        return ""
    size = len(str(source.get("data") or "")) * 3 // 4
    return f"{source.get('media_type')}, about {size:,} bytes"


def _tools(tools: Any) -> Iterator[SentTool]:
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, Mapping):
            yield SentTool(
                name=str(tool.get("name")),
                description=str(tool.get("description") or ""),
                schema=_json(tool.get("input_schema")),
                characters=len(json.dumps(tool, ensure_ascii=False)),
            )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
