"""Request bodies: the model's name, and what a bare upstream can't take.

Bodies reach megabytes and hold up everybody while Python parses them, so the usual
case doesn't: the CLI writes the model's name first, where it can be changed in place.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .lines import Upstream

_MODEL_FIRST = re.compile(rb'\s*\{\s*"model"\s*:\s*"([^"\\]*)"')
_HAS_TOOLS = re.compile(rb'"tools"\s*:\s*\[\s*\{')
_STREAMS = re.compile(rb'"stream"\s*:\s*true')
_WANTS_FORMAT = re.compile(rb'"output_config"\s*:\s*\{[^{}]*"format"\s*:')

# The Messages API as it stands without any beta flag.
PLAIN_FIELDS = {
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
}
PLAIN_TOOL_FIELDS = {"name", "description", "input_schema", "cache_control"}


def outgoing_body(body: bytes, upstream: Upstream) -> bytes:
    """The body as the provider wants it; unchanged where nothing has to change."""
    if upstream.bare:
        body = _edited(body, lambda request: plain_request(request))
    if upstream.model_prefix:
        body = _with_prefix(body, upstream.model_prefix)
    return body


def with_temperature(body: bytes, temperature: float | None) -> bytes:
    """The request at this temperature, which the CLI has no option for.

    Providers take a temperature or thinking, not both, so such a request does not
    think, nor name edits of the context that are about thinking.
    """
    if temperature is None:
        return body
    return _edited(body, lambda request: _at_temperature(request, temperature))


def _at_temperature(request: dict[str, Any], temperature: float) -> dict[str, Any]:
    request.pop("thinking", None)
    management = request.get("context_management")
    if isinstance(management, dict) and isinstance(management.get("edits"), list):
        management["edits"] = [
            edit for edit in management["edits"] if "thinking" not in str(edit)
        ]
        if not management["edits"]:
            del request["context_management"]
    return {**request, "temperature": temperature}


def without_prefix(model: str, upstream: Upstream) -> str:
    return model.removeprefix(upstream.model_prefix)


def model_of(body: bytes) -> str:
    """The model that a request names; empty where it names none."""
    found = _MODEL_FIRST.match(body)
    if found is not None:
        return found[1].decode(errors="replace")
    try:
        request = json.loads(body)
    except ValueError:
        return ""
    model = request.get("model") if isinstance(request, dict) else None
    return model if isinstance(model, str) else ""


def is_conversation(body: bytes) -> bool:
    """Whether this is the agent's conversation, not a title or a structured answer.

    Told from bytes: a quote inside of a text is escaped, so these are real fields. A
    field of that name deeper down may mislead, which only keeps one request too many.
    """
    if _HAS_TOOLS.search(body):
        return True
    return bool(_STREAMS.search(body)) and not _WANTS_FORMAT.search(body)


def plain_request(request: dict[str, Any]) -> dict[str, Any]:
    """The request without what only beta flags allow.

    Dropped: unknown top-level fields (`context_management`, `output_config`, ...),
    adaptive thinking, extra fields of tools, and times or scopes of cache marks.
    """
    plain = {name: part for name, part in request.items() if name in PLAIN_FIELDS}
    thinking = plain.get("thinking")
    if isinstance(thinking, dict):
        if thinking.get("type") not in ("enabled", "disabled"):
            del plain["thinking"]
        else:
            thinking.pop("display", None)
    if isinstance(plain.get("tools"), list):
        plain["tools"] = [_plain_tool(tool) for tool in plain["tools"]]
    for block in _blocks(plain):
        _make_cache_mark_plain(block)
    return plain


def _plain_tool(tool: Any) -> Any:
    """Our own tools lose their extra fields; a provider's own tool is its matter."""
    if not isinstance(tool, dict) or tool.get("type", "custom") != "custom":
        return tool
    plain = {name: part for name, part in tool.items() if name in PLAIN_TOOL_FIELDS}
    _make_cache_mark_plain(plain)
    return plain


def _blocks(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The content blocks of the system prompt and of all messages."""
    contents = [request.get("system")]
    for message in request.get("messages") or []:
        if isinstance(message, dict):
            contents.append(message.get("content"))
    lists = [content for content in contents if isinstance(content, list)]
    return [block for blocks in lists for block in blocks if isinstance(block, dict)]


def _make_cache_mark_plain(block: dict[str, Any]) -> None:
    if isinstance(block.get("cache_control"), dict):
        block["cache_control"] = {"type": "ephemeral"}


def _with_prefix(body: bytes, prefix: str) -> bytes:
    found = _MODEL_FIRST.match(body)
    if found is None:
        return _edited(body, lambda request: _prefixed(request, prefix))
    if found[1].startswith(prefix.encode()):
        return body
    escaped = json.dumps(prefix)[1:-1].encode()
    return body[: found.start(1)] + escaped + body[found.start(1) :]


def _prefixed(request: dict[str, Any], prefix: str) -> dict[str, Any]:
    model = request.get("model")
    if isinstance(model, str) and not model.startswith(prefix):
        request["model"] = prefix + model
    return request


def _edited(body: bytes, edit: Any) -> bytes:
    """A body that is no JSON object passes: the provider says best what is wrong."""
    try:
        request = json.loads(body)
    except ValueError:
        return body
    if not isinstance(request, dict):
        return body
    return json.dumps(edit(request), separators=(",", ":")).encode("ascii")
