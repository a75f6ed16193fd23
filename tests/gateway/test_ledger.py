"""Each answered call is entered once, whatever becomes of it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from uuid import uuid4

import pytest
from channels.db import database_sync_to_async

from agents.demo.server import DemoServer
from agents.domain.requests import last_request
from agents.gateway.ledger import Meter
from agents.models import AgentSession, CostEntry, ModelRequest

from .caller import Caller, request, upstream
from .upstream import ANSWER, ScriptedUpstream, delta, end, start, stream, whole

FIELDS = (
    "message_id",
    "model",
    "agent_id",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
)


@database_sync_to_async
def entries() -> list[tuple[Any, ...]]:
    return list(CostEntry.objects.values_list(*FIELDS))


@database_sync_to_async
def kept() -> list[ModelRequest]:
    return list(ModelRequest.objects.all())


async def test_a_streamed_answer_is_entered_once(
    session_caller: Caller, session: AgentSession
) -> None:
    numbers: dict[str, Any] = {
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 4,
    }
    async with ScriptedUpstream(stream(start(**numbers), delta("a"), end())) as up:
        session_caller.open(upstream(up.url))

        await session_caller.post(x_claude_code_agent_id="agent-1")
        await session_caller.gateway.settle()

    assert await entries() == [("msg_1", "claude-opus-5-5", "agent-1", 11, 7, 3, 4)]
    await database_sync_to_async(session.refresh_from_db)()
    assert (session.input_tokens, session.output_tokens) == (18, 7)


async def test_it_stands_in_the_ledger_when_the_caller_hears_of_the_end(
    session_caller: Caller,
) -> None:
    never = asyncio.Event()
    async with ScriptedUpstream(stream(start(), delta("a"), end(), never)) as up:
        session_caller.open(upstream(up.url))
        response = await session_caller.stream()
        received = bytearray()
        async for chunk in response.aiter_raw():
            received += chunk
            if received.endswith(end()):
                break

        await session_caller.gateway.settle()
        assert len(await entries()) == 1
        await response.aclose()
        await up.requests[0].gone.wait()
        await session_caller.gateway.settle()
        assert len(await entries()) == 1


async def test_a_whole_answer_is_entered(session_caller: Caller) -> None:
    async with ScriptedUpstream(whole(ANSWER)) as up:
        session_caller.open(upstream(up.url))

        await session_caller.post(request(stream=None))
        await session_caller.gateway.settle()

    assert await entries() == [("msg_whole", "claude-opus-5-5", "", 5, 6, 7, 8)]


async def test_a_hung_up_answer_is_entered_as_far_as_known(
    session_caller: Caller,
) -> None:
    never = asyncio.Event()
    async with ScriptedUpstream(stream(start(), delta("a"), never)) as up:
        line = session_caller.open(upstream(up.url))
        response = await session_caller.stream()
        (call,) = line.calls
        await anext(response.aiter_raw())
        await response.aclose()

        await asyncio.wait({call}, timeout=20)
        await session_caller.gateway.settle()

    assert await entries() == [("msg_1", "claude-opus-5-5", "", 11, 1, 0, 0)]


async def test_one_message_id_counts_once(session_caller: Caller) -> None:
    async with ScriptedUpstream(stream(start(), end())) as up:
        session_caller.open(upstream(up.url))

        await session_caller.post()
        await session_caller.post()
        await session_caller.gateway.settle()

    assert len(await entries()) == 1


async def test_answers_without_an_id_count_each(session_caller: Caller) -> None:
    async with ScriptedUpstream(stream(start(message_id=""), end())) as up:
        session_caller.open(upstream(up.url))

        await session_caller.post()
        await session_caller.post()
        await session_caller.gateway.settle()

    found = await entries()
    assert len({entry[0] for entry in found}) == len(found) == 2


async def test_refusals_and_counts_cost_nothing(session_caller: Caller) -> None:
    error = {"type": "error", "error": {"type": "api_error", "message": "no"}}
    async with ScriptedUpstream(whole(error, status=500), whole(ANSWER)) as up:
        session_caller.open(upstream(up.url))

        await session_caller.post()
        await session_caller.post(None, "/v1/messages/count_tokens")
        await session_caller.gateway.settle()

    assert await entries() == []


async def test_the_ledger_agrees_with_the_demo_models_own(
    session_caller: Caller, demo: DemoServer
) -> None:
    session_caller.open(upstream(demo.url, model_prefix="cc/"))

    await session_caller.post(request("hello"))
    await session_caller.post(request("demo: stream 40 words"))
    await session_caller.post(request("hello", stream=None))
    await session_caller.gateway.settle()

    theirs = [
        (
            entry.message_id,
            entry.model.removeprefix("cc/"),
            "",
            entry.input_tokens,
            entry.output_tokens,
            entry.cache_read_input_tokens,
            entry.cache_creation_input_tokens,
        )
        for entry in demo.state.usage_log
    ]
    assert len(theirs) == 3
    assert await entries() == theirs


async def test_stopping_writes_what_is_waiting(session_caller: Caller) -> None:
    async with ScriptedUpstream(stream(start(), end())) as up:
        session_caller.open(upstream(up.url))
        await session_caller.post()

        await session_caller.gateway.stop()

    assert len(await entries()) == 1


async def test_the_last_request_is_kept(
    session_caller: Caller, session: AgentSession, demo: DemoServer
) -> None:
    session_caller.open(upstream(demo.url, model_prefix="cc/"))

    await session_caller.post(request("first"))
    await session_caller.post(request("second"))
    await session_caller.gateway.settle()

    assert await database_sync_to_async(last_request)(session.pk) == request("second")


async def test_side_calls_counts_and_sub_agents_leave_it_alone(
    session_caller: Caller, session: AgentSession, demo: DemoServer
) -> None:
    session_caller.open(upstream(demo.url))

    await session_caller.post(request("conversation"))
    await session_caller.post(request("a title", tools=None, stream=None))
    await session_caller.post(request("count"), "/v1/messages/count_tokens")
    await session_caller.post(request("sub-agent"), x_claude_code_agent_id="a")
    await session_caller.gateway.settle()

    found = await database_sync_to_async(last_request)(session.pk)
    assert found == request("conversation")


async def test_a_huge_last_request_leaves_only_its_size(
    session_caller: Caller, demo: DemoServer, settings: Any
) -> None:
    settings.OPENSWARM = {**settings.OPENSWARM, "last_request_max_bytes": 10}
    session_caller.open(upstream(demo.url))

    await session_caller.post(b'{"tools":[{"name":"T"}]}')
    await session_caller.gateway.settle()

    (row,) = await kept()
    assert (bytes(row.body_zlib), row.body_bytes, row.is_truncated) == (b"", 24, True)


async def test_a_failing_write_is_logged_and_the_next_one_works(
    session_caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    too_long = start(message_id="x", input_tokens=2**70)
    async with ScriptedUpstream(stream(too_long, end()), stream(start(), end())) as up:
        session_caller.open(upstream(up.url))

        with caplog.at_level(logging.ERROR):
            await session_caller.post()
            await session_caller.post()
            await session_caller.gateway.settle()

    assert [entry[0] for entry in await entries()] == ["msg_1"]
    assert "could not use its books" in caplog.text


async def test_a_session_that_is_gone_is_no_failure(
    gateway: Any, demo: DemoServer, transactional_db: None
) -> None:
    async with Caller(gateway, uuid4()) as caller:
        caller.open(upstream(demo.url))

        response = await caller.post()
        await gateway.settle()

    assert response.status_code == 200
    assert (await entries(), await kept()) == ([], [])


def test_counts_only_grow() -> None:
    meter = Meter()
    meter.observe({"type": "message_start", "message": {"id": "m", "usage": {}}})
    meter.observe({"type": "message_delta", "usage": {"input_tokens": 9}})
    meter.observe({"type": "message_delta", "usage": {"input_tokens": 0}})

    assert meter.usage().input_tokens == 9


@pytest.mark.parametrize(
    "data",
    [
        {"type": "message_start"},
        {"type": "message_start", "message": "text"},
        {"type": "message_delta"},
        {
            "type": "message_delta",
            "usage": {"input_tokens": "9", "output_tokens": None},
        },
        {"type": "unheard_of"},
        {},
    ],
)
def test_odd_events_count_nothing(data: dict[str, Any]) -> None:
    meter = Meter()

    meter.observe(data)

    assert not meter.has_begun
    assert meter.usage().input_tokens == 0


def test_an_error_event_ends_an_answer() -> None:
    meter = Meter()

    meter.observe({"type": "error", "error": {}})

    assert meter.is_over
