from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from agents.domain.requests import keep_request, last_request, tool_schema
from agents.models import AgentSession, ModelRequest


def keep(session: AgentSession, body: Any, max_bytes: int = 100_000) -> None:
    keep_request(session.pk, json.dumps(body).encode(), max_bytes=max_bytes)


def test_the_last_request_replaces_the_one_before(session: AgentSession) -> None:
    keep(session, {"messages": [1]})
    keep(session, {"messages": [1, 2]})

    assert last_request(session.pk) == {"messages": [1, 2]}
    assert ModelRequest.objects.get().body_bytes == len(b'{"messages": [1, 2]}')


def test_of_a_huge_request_only_the_size_is_kept(session: AgentSession) -> None:
    keep(session, {"messages": []})
    keep(session, {"messages": list(range(10_000))}, max_bytes=100)

    kept = ModelRequest.objects.get()
    assert kept.is_truncated
    assert bytes(kept.body_zlib) == b""
    assert kept.body_bytes > 10_000
    assert last_request(session.pk) is None


def test_a_session_that_is_gone_keeps_nothing(db: None) -> None:
    keep_request(uuid4(), b"{}", max_bytes=100)

    assert not ModelRequest.objects.exists()


@pytest.mark.parametrize("body", [b"not json", b"[1]", b'"text"', b"\xff\xfe"])
def test_what_is_no_object_reads_as_nothing(session: AgentSession, body: bytes) -> None:
    keep_request(session.pk, body, max_bytes=100)

    assert last_request(session.pk) is None
    assert tool_schema(session.pk, "Bash") is None


def test_a_tools_schema_is_found_by_name(session: AgentSession) -> None:
    schema = {"type": "object"}
    keep(
        session,
        {"tools": [5, {"name": "Read"}, {"name": "Bash", "input_schema": schema}]},
    )

    assert tool_schema(session.pk, "Bash") == schema
    assert tool_schema(session.pk, "Read") is None
    assert tool_schema(session.pk, "Write") is None


@pytest.mark.parametrize("tools", [None, "Bash", {"Bash": {}}])
def test_odd_tools_are_no_error(session: AgentSession, tools: Any) -> None:
    keep(session, {"tools": tools})

    assert tool_schema(session.pk, "Bash") is None
