"""A tool call as data of any shape: the model wrote the input, a tool the result.

Accessors give the wanted type or an empty value, and never raise. Nothing here makes
HTML.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .text import json_text, truncate_bytes

_MAX_IMAGE_CHARS = 6_000_000
_MAX_IMAGES = 8
_DATA_URL = re.compile(r"data:([a-z/]{1,20});base64,")
_MAGIC = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came back: the text the model saw, the CLI's structured form, images.

    `images` are data URLs, or image blocks as the API or MCP write them.
    """

    text: str = ""
    is_error: bool = False
    structured: dict[str, Any] | None = None
    images: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class ToolCall:
    """One call with its result, if there is one yet, and how much of it to show."""

    name: str
    raw_input: Any
    result: ToolResult | None
    max_bytes: int

    @cached_property
    def input(self) -> dict[str, Any]:
        return as_dict(self.raw_input)

    @cached_property
    def structured(self) -> dict[str, Any]:
        return as_dict(self.result.structured) if self.result else {}

    @cached_property
    def result_text(self) -> str:
        return as_text(self.result.text) if self.result else ""

    @property
    def is_error(self) -> bool:
        return bool(self.result and self.result.is_error)

    @property
    def max_rows(self) -> int:
        """Rows and list items; each costs a page more than its own text."""
        return max(self.max_bytes // 32, 1)

    def text(self, *names: str) -> str:
        """The first of these input fields that is a non-empty string."""
        return first_text(self.input, *names)

    def cut(self, text: str) -> tuple[str, bool]:
        return truncate_bytes(text, self.max_bytes)


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_text(value: Any) -> str:
    """A string as it is, text blocks joined, anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    blocks = [first_text(as_dict(block), "text") for block in as_list(value)]
    return "\n".join(filter(None, blocks)) or json_text(value)


def first_text(data: dict[str, Any], *names: str) -> str:
    values = (data.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def texts(value: Any) -> list[str]:
    return [item for item in as_list(value) if isinstance(item, str)]


def dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in as_list(value) if isinstance(item, dict)]


def strings_in(value: Any) -> Iterator[str]:
    """Every string anywhere in the data, keys included."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case dict() as data:
                waiting += [*data.keys(), *data.values()]
            case list() as items:
                waiting += items


def image_urls(call: ToolCall) -> tuple[list[str], int]:
    """Data URLs of the result's images, and how many were refused.

    Only base64 PNG, JPEG, GIF and WebP whose content is what it claims to be.
    """
    candidates = list(as_list(call.result.images)) if call.result else []
    if call.structured.get("type") == "image" and not candidates:
        candidates.append(call.structured.get("file"))
    if call.structured.get("isImage") is True and not candidates:
        candidates.append(call.structured.get("stdout"))
    urls = [_image_url(candidate) for candidate in candidates[:_MAX_IMAGES]]
    valid = [url for url in urls if url]
    return valid, len(candidates) - len(valid)


def _image_url(value: Any) -> str:
    if isinstance(value, str):
        match = _DATA_URL.match(value)
        media_type, data = (match[1], value[match.end() :]) if match else ("", "")
    else:
        block = as_dict(value)
        source = as_dict(block.get("source")) or block
        media_type = first_text(source, "media_type", "mimeType", "type")
        data = first_text(source, "data", "base64")
    return f"data:{media_type};base64,{data}" if _is_image(media_type, data) else ""


def _is_image(media_type: str, data: str) -> bool:
    magic = _MAGIC.get(media_type)
    if magic is None or not data or len(data) > _MAX_IMAGE_CHARS:
        return False
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    if media_type == "image/webp" and content[8:12] != b"WEBP":
        return False
    return content.startswith(magic)
