"""What of a message is searched; each database's SQL says the same in its words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents.models.messages import MessageRole

MAX_TOOL_CHARACTERS = 32_768
"""Of a result, and of each text of an input; what was said is searched whole."""


def searched_text(role: str, text: str, content: Any, tool_name: str) -> str:
    if role == MessageRole.TOOL_CALL:
        given = content.get("input") if isinstance(content, dict) else None
        return "\n".join([tool_name, *_texts(given)])
    if role == MessageRole.TOOL_RESULT:
        return text[:MAX_TOOL_CHARACTERS]
    return text


def _texts(value: Any) -> Iterator[str]:
    """The texts in a JSON value, without its keys and numbers."""
    match value:
        case str():
            yield value[:MAX_TOOL_CHARACTERS]
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
