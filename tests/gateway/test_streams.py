"""Streams pass as they are, apart from merging."""

from __future__ import annotations

import asyncio
import gzip

import httpx2
import pytest
from pytest_django.fixtures import Settings

from agents.demo.server import DemoServer
from agents.gateway.events import EventSplitter

from .caller import Caller, request, upstream
from .upstream import ScriptedUpstream, delta, end, sse, start, stream, whole

SCRIPT = 'demo: think about it\ndemo: stream 30 words\ndemo: tool Bash {"command":"ls"}'


def types(raw: bytes) -> list[str]:
    return [event.type for event in EventSplitter().feed(raw)]


def text_of(raw: bytes) -> str:
    deltas = [event.data.get("delta", {}) for event in EventSplitter().feed(raw)]
    return "".join(delta.get("text", "") for delta in deltas)


@pytest.fixture
def unmerged(settings: Settings) -> None:
    settings.OPENSWARM = {**settings.OPENSWARM, "gateway_join_ms": 0}


@pytest.fixture
def long_window(settings: Settings) -> None:
    settings.OPENSWARM = {**settings.OPENSWARM, "gateway_join_ms": 60_000}


async def test_every_byte_of_a_stream_arrives(caller: Caller, unmerged: None) -> None:
    odd = b": a comment\n\ndata: no json\n\nevent: ping\r\ndata: {}\r\n\r\n"
    sent = start() + odd + delta("Hé") + delta("llo") + end() + b"data: rest"
    chunks = [sent[at : at + 7] for at in range(0, len(sent), 7)]
    async with ScriptedUpstream(stream(*chunks)) as up:
        caller.open(upstream(up.url))

        response = await caller.post()

    assert response.content == sent
    assert response.headers["request-id"] == "req_1"
    assert "set-cookie" not in response.headers
    assert up.requests[0].headers["accept-encoding"] == "identity"


async def test_the_request_arrives_as_it_was_sent(caller: Caller) -> None:
    async with ScriptedUpstream(stream(start(), end())) as up:
        caller.open(upstream(f"{up.url}/v1/"))
        body = b'{"model" : "claude-opus-5-5", "odd":1}'

        await caller.post(
            body, "/v1/messages?beta=true", anthropic_beta="b", x_other="o"
        )

    (sent,) = up.requests
    assert (sent.target, sent.body) == ("/v1/messages?beta=true", body)
    assert (sent.headers["anthropic-beta"], sent.headers["x-other"]) == ("b", "o")


async def test_words_pass_while_the_model_still_writes(caller: Caller) -> None:
    more = asyncio.Event()
    async with ScriptedUpstream(
        stream(start(), delta("first"), more, delta("second"), end())
    ) as up:
        caller.open(upstream(up.url))
        response = await caller.stream()
        received = bytearray()

        async for chunk in response.aiter_raw():
            received += chunk
            if text_of(bytes(received)) == "first":
                more.set()

    assert text_of(bytes(received)) == "firstsecond"


async def test_held_deltas_leave_by_themselves(caller: Caller) -> None:
    more = asyncio.Event()
    async with ScriptedUpstream(
        stream(start() + delta("a") + delta("b") + delta("c"), more, end())
    ) as up:
        caller.open(upstream(up.url))
        response = await caller.stream()
        received = bytearray()

        async for chunk in response.aiter_raw():
            received += chunk
            if text_of(bytes(received)) == "abc":
                more.set()

    merged = (
        b'{"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":"bc"}}'
    )
    assert bytes(received) == (
        start()
        + delta("a")
        + b"event: content_block_delta\ndata: "
        + merged
        + b"\n\n"
        + end()
    )


async def test_deltas_of_a_window_arrive_as_one(
    caller: Caller, long_window: None
) -> None:
    stop = sse({"type": "content_block_stop", "index": 0})
    async with ScriptedUpstream(
        stream(start(), delta("a"), delta("b"), delta("c"), stop + end())
    ) as up:
        caller.open(upstream(up.url))

        response = await caller.post()

    assert text_of(response.content) == "abc"
    assert types(response.content) == [
        "message_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


async def test_merging_leaves_the_demo_models_message_whole(
    caller: Caller, demo: DemoServer, long_window: None
) -> None:
    line = caller.open(upstream(demo.url))

    merged = (await caller.post(request(SCRIPT))).content

    direct = httpx2.post(
        f"{demo.url}/v1/messages", json=request(SCRIPT), trust_env=False
    ).content
    assert text_of(merged) == text_of(direct)
    assert types(merged)[-2:] == types(direct)[-2:]
    assert len(types(merged)) < len(types(direct))
    assert line.model_actual == "claude-opus-5-5"


async def test_the_demo_model_is_found_by_its_url(
    caller: Caller, demo: DemoServer
) -> None:
    caller.gateway.demo_url = demo.url
    caller.open(upstream("", kind="demo", api_key="", allow_private=False))

    response = await caller.post(request("demo: say hello there"))

    assert text_of(response.content) == "hello there"


async def test_it_asks_a_prefixing_upstream_by_its_own_names(caller: Caller) -> None:
    async with ScriptedUpstream(
        stream(start(model="cc/claude-opus-5-5"), delta("a"), end())
    ) as up:
        line = caller.open(upstream(up.url, kind="gateway", model_prefix="cc/"))

        response = await caller.post()

    first = next(iter(EventSplitter().feed(response.content)))
    assert up.requests[0].json["model"] == "cc/claude-opus-5-5"
    assert first.data["message"]["model"] == "claude-opus-5-5"
    assert first.data["message"]["id"] == "msg_1"
    assert line.model_actual == "claude-opus-5-5"


async def test_a_whole_answer_loses_the_prefix_too(caller: Caller) -> None:
    answer = {"id": "m", "model": "cc/claude-opus-5-5", "content": [{"text": "\ud83d"}]}
    async with ScriptedUpstream(whole(answer)) as up:
        caller.open(upstream(up.url, model_prefix="cc/"))

        response = await caller.post(request(stream=None))

    assert response.json() == {**answer, "model": "claude-opus-5-5"}


async def test_a_bare_upstream_gets_neither_beta_query_nor_flag(
    caller: Caller,
) -> None:
    async with ScriptedUpstream(stream(start(), end())) as up:
        caller.open(upstream(up.url, bare=True))

        await caller.post(None, "/v1/messages?beta=true", anthropic_beta="b")

    (sent,) = up.requests
    assert sent.target == "/v1/messages"
    assert "anthropic-beta" not in sent.headers


async def test_a_compressed_answer_is_read_all_the_same(caller: Caller) -> None:
    packed = gzip.compress(start() + delta("a") + end())
    async with ScriptedUpstream(
        whole(packed, content_type="text/event-stream", content_encoding="gzip")
    ) as up:
        caller.open(upstream(up.url))

        response = await caller.post()

    assert response.content == start() + delta("a") + end()
    assert "content-encoding" not in response.headers


async def test_counting_passes_through(caller: Caller, demo: DemoServer) -> None:
    line = caller.open(upstream(demo.url))

    response = await caller.post(request(stream=None), "/v1/messages/count_tokens")

    assert response.json()["input_tokens"] > 0
    assert (caller.troubles, line.model_actual) == ([], None)


async def test_an_unreadable_whole_answer_passes_as_it_is(caller: Caller) -> None:
    async with ScriptedUpstream(whole(b"{broken")) as up:
        caller.open(upstream(up.url))

        response = await caller.post(request(stream=None))

    assert (response.status_code, response.content) == (200, b"{broken")


async def test_each_byte_is_noted_on_the_line(caller: Caller) -> None:
    more = asyncio.Event()
    async with ScriptedUpstream(stream(start(), more, delta("a"), end())) as up:
        line = caller.open(upstream(up.url))
        opened_at = line.last_byte_at
        response = await caller.stream()
        chunks = response.aiter_raw()
        await anext(chunks)
        started_at = line.last_byte_at
        more.set()
        async for _ in chunks:
            pass

    assert opened_at < started_at < line.last_byte_at
