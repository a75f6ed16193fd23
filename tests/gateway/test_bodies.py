from __future__ import annotations

import json
from typing import Any

import pytest

from agents.gateway.bodies import (
    is_conversation,
    outgoing_body,
    plain_request,
    without_prefix,
)

from .caller import upstream

PREFIXING = upstream("http://x", model_prefix="cc/")
BARE = upstream("http://x", bare=True)
BODY = b'{"model":"claude-opus-5-5","messages":[{"role":"user","content":"\\ud83d"}]}'


def test_a_body_passes_to_the_letter_where_nothing_has_to_change() -> None:
    assert outgoing_body(BODY, upstream("http://x")) is BODY


def test_the_prefix_is_put_in_front_of_the_model_alone() -> None:
    changed = outgoing_body(BODY, PREFIXING)

    assert changed == BODY.replace(b'"claude-opus', b'"cc/claude-opus')


def test_a_prefix_that_is_there_is_not_put_twice() -> None:
    body = b'{ "model" : "cc/claude-opus-5-5"}'

    assert outgoing_body(body, PREFIXING) is body


def test_a_prefix_is_escaped() -> None:
    changed = outgoing_body(BODY, upstream("http://x", model_prefix='"'))

    assert json.loads(changed)["model"] == '"claude-opus-5-5'


@pytest.mark.parametrize("model", ["claude-opus-5-5", "cc/claude-opus-5-5"])
def test_the_model_is_found_wherever_it_stands(model: str) -> None:
    body = json.dumps({"messages": [{"model": "x"}], "model": model}).encode()

    changed = json.loads(outgoing_body(body, PREFIXING))

    assert changed == {"messages": [{"model": "x"}], "model": "cc/claude-opus-5-5"}


@pytest.mark.parametrize("body", [b"not json", b"[1]", b'{"model": 1}', b"{}"])
@pytest.mark.parametrize("to", [PREFIXING, BARE])
def test_the_provider_judges_broken_bodies(body: bytes, to: Any) -> None:
    changed = outgoing_body(body, to)

    assert changed == body or json.loads(changed) == json.loads(body)


def test_the_answer_loses_the_prefix() -> None:
    assert without_prefix("cc/claude-opus-5-5", PREFIXING) == "claude-opus-5-5"
    assert without_prefix("other", PREFIXING) == "other"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"tools": [{"name": "Bash"}]}, True),
        ({"tools": [], "stream": True}, True),
        ({"stream": True, "messages": []}, True),
        ({"stream": False, "messages": []}, False),
        ({"messages": [{"content": 'say "tools":[{ and "stream":true'}]}, False),
        ({"stream": True, "output_config": {"format": {"type": "x"}}}, False),
        ({"stream": True, "output_config": {"effort": "high"}}, True),
    ],
)
def test_it_tells_conversations_from_side_calls(
    body: dict[str, Any], expected: bool
) -> None:
    compact = json.dumps(body, separators=(",", ":")).encode()

    assert is_conversation(compact) is expected
    assert is_conversation(json.dumps(body).encode()) is expected


def test_a_bare_upstream_gets_the_plain_api() -> None:
    mark = {"type": "ephemeral", "ttl": "1h", "scope": "global"}
    web_search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    request = {
        "model": "m",
        "max_tokens": 5,
        "system": [{"type": "text", "text": "s", "cache_control": dict(mark)}],
        "messages": [
            {"role": "user", "content": "plain"},
            {
                "role": "user",
                "content": [{"type": "text", "cache_control": dict(mark)}],
            },
            "broken",
        ],
        "tools": [
            {"name": "T", "input_schema": {}, "defer_loading": True, "strict": True},
            {"type": "custom", "name": "U", "cache_control": dict(mark)},
            web_search,
        ],
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": []},
        "output_config": {"effort": "high"},
        "betas": ["x"],
    }

    plain = json.loads(outgoing_body(json.dumps(request).encode(), BARE))

    assert plain == {
        "model": "m",
        "max_tokens": 5,
        "system": [
            {"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}
        ],
        "messages": [
            {"role": "user", "content": "plain"},
            {
                "role": "user",
                "content": [{"type": "text", "cache_control": {"type": "ephemeral"}}],
            },
            "broken",
        ],
        "tools": [
            {"name": "T", "input_schema": {}},
            {"name": "U", "cache_control": {"type": "ephemeral"}},
            web_search,
        ],
    }


def test_a_bare_upstream_gets_old_style_thinking() -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024, "display": "summarized"}

    plain = plain_request({"model": "m", "thinking": thinking})

    assert plain["thinking"] == {"type": "enabled", "budget_tokens": 1024}
