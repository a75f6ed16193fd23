"""What the model saw, taken apart."""

from __future__ import annotations

import json
from typing import Any

from agents.domain.queries.model_context import MAX_SHOWN_CHARACTERS, get_context
from agents.domain.requests import keep_request
from agents.models import AgentSession

BODY: dict[str, Any] = {
    "model": "claude-test",
    "max_tokens": 100,
    "system": [
        {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}
    ],
    "tools": [{"name": "Read", "description": "Reads", "input_schema": {"a": 1}}],
    "messages": [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm"},
                {"type": "tool_use", "name": "Read", "input": {"x": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "content": [{"type": "text", "text": "Yes"}]},
                {
                    "type": "image",
                    "source": {"media_type": "image/png", "data": "A" * 400},
                },
                {"type": "novelty", "what": 1},
            ],
        },
    ],
}


def keep(session: AgentSession, body: Any, max_bytes: int = 10**6) -> None:
    keep_request(session.pk, json.dumps(body).encode(), max_bytes=max_bytes)


def test_it_is_shown_block_by_block(session: AgentSession) -> None:
    keep(session, BODY)

    seen = get_context(session)

    assert seen is not None
    assert seen.settings == (("model", "claude-test"), ("max_tokens", "100"))
    assert [(b.text, b.is_cached) for b in seen.system] == [("Be kind.", True)]
    assert (seen.system_characters, seen.message_characters) == (8, 86)
    (tool,) = seen.tools
    assert (tool.name, tool.schema) == ("Read", '{\n  "a": 1\n}')
    blocks = [(b.kind, b.text) for m in seen.messages for b in m.blocks]
    assert blocks == [
        ("text", "Hi"),
        ("thinking", "Hm"),
        ("tool_use", 'Read {\n  "x": 1\n}'),
        ("tool_result", "Yes"),
        ("image", "image/png, about 300 bytes"),
        ("novelty", '{\n  "type": "novelty",\n  "what": 1\n}'),
    ]


def test_what_fills_screens_is_cut(session: AgentSession) -> None:
    keep(session, {"messages": [{"role": "user", "content": "x" * 20_001}]})

    seen = get_context(session)

    assert seen is not None
    (block,) = seen.messages[0].blocks
    assert block.is_cut
    assert (len(block.text), block.characters) == (MAX_SHOWN_CHARACTERS, 20_001)


def test_without_a_request_or_its_body_there_is_little_to_say(
    session: AgentSession,
) -> None:
    assert get_context(session) is None
    keep(session, BODY, max_bytes=10)

    seen = get_context(session)

    assert seen is not None
    assert seen.is_truncated
    assert seen.size_bytes > 100


def test_what_is_no_request_breaks_nothing(session: AgentSession) -> None:
    keep(session, {"system": 1, "messages": [1, {"content": [2]}], "tools": "x"})

    seen = get_context(session)

    assert seen is not None
    assert seen.messages[0].blocks == ()
