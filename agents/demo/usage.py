"""Believable token counts for a request, unless the script names them."""

from __future__ import annotations

import json
from typing import Any

from agents.demo.script import Usage

CHARACTERS_PER_TOKEN = 4
UNCACHED_TOKENS = 4  # what the real API bills at full price when all else is cached


def estimate_usage(body: dict[str, Any], forced: Usage | None) -> Usage:
    """What was sent before is read from the cache, what is new is written to it."""
    total = count_tokens(body)
    new = _tokens_since_last_answer(body.get("messages") or [])
    has_history = any(m.get("role") == "assistant" for m in body.get("messages") or [])
    read = max(0, total - new) if has_history else 0
    forced = forced or Usage()
    return Usage(
        input=_or(forced.input, UNCACHED_TOKENS),
        cache_read=_or(forced.cache_read, read),
        cache_write=_or(forced.cache_write, max(0, total - read - UNCACHED_TOKENS)),
    )


def count_tokens(body: dict[str, Any]) -> int:
    counted = {key: body.get(key) for key in ("system", "messages", "tools")}
    return len(json.dumps(counted)) // CHARACTERS_PER_TOKEN


def _tokens_since_last_answer(messages: list[dict[str, Any]]) -> int:
    new = 0
    for message in reversed(messages):
        if message.get("role") == "assistant":
            break
        new += len(json.dumps(message))
    return new // CHARACTERS_PER_TOKEN


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
