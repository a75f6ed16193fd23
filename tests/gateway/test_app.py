from __future__ import annotations

import asyncio

import httpx2
import pytest

from agents.demo.server import DemoServer
from agents.gateway.app import MAX_BODY_BYTES
from agents.gateway.server import Gateway

from .caller import REAL_KEY, Caller, request, upstream
from .upstream import ANSWER, ScriptedUpstream, delta, start, stream, whole

NOT_FOUND = {
    "type": "error",
    "error": {
        "type": "not_found_error",
        "message": "Only the Messages API is served here.",
    },
}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1/messages"),
        ("GET", "/v1/models"),
        ("POST", "/v1/models"),
        ("POST", "/v1/messages/batches"),
        ("POST", "/v1/messages/"),
        ("POST", "/v1/files"),
        ("DELETE", "/v1/messages"),
    ],
)
async def test_it_lets_nothing_but_messages_through(
    caller: Caller, demo: DemoServer, method: str, path: str
) -> None:
    line = caller.open(upstream(demo.url))

    response = await caller.http.request(
        method, path, headers={"x-api-key": line.token}
    )

    assert (response.status_code, response.json()) == (404, NOT_FOUND)
    assert demo.state.requests == []


async def test_it_answers_a_head_request_without_a_body(caller: Caller) -> None:
    response = await caller.http.head("/")

    assert (response.status_code, response.content) == (404, b"")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-api-key": "wrong"},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic wrong"},
        {"authorization": "Bearer"},
    ],
)
async def test_it_refuses_unknown_tokens(
    caller: Caller, headers: dict[str, str]
) -> None:
    response = await caller.http.post("/v1/messages", headers=headers, json={})

    assert response.status_code == 401
    assert response.json()["error"]["type"] == "authentication_error"


@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
async def test_it_takes_the_token_from_either_header(
    caller: Caller, demo: DemoServer, header: str
) -> None:
    token = caller.open(upstream(demo.url)).token
    value = f"Bearer {token}" if header == "authorization" else token

    response = await caller.http.post(
        "/v1/messages", headers={header: value}, json=request()
    )

    assert response.status_code == 200


async def test_a_closed_line_is_refused(caller: Caller, demo: DemoServer) -> None:
    line = caller.open(upstream(demo.url))
    caller.gateway.close_line(line)
    caller.gateway.close_line(line)

    response = await caller.post()

    assert response.status_code == 401
    assert demo.state.requests == []


async def test_it_refuses_bodies_over_the_limit(caller: Caller) -> None:
    caller.open(upstream("http://127.0.0.1:9"))

    response = await caller.post(b" " * (MAX_BODY_BYTES + 1))

    assert response.status_code == 413
    assert response.json()["error"]["type"] == "request_too_large"


async def test_a_caller_that_leaves_before_its_body_is_there_calls_nobody(
    gateway: Gateway, caller: Caller, demo: DemoServer
) -> None:
    line = caller.open(upstream(demo.url))
    port = int(gateway.base_url.rpartition(":")[2])
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n"
        b"x-api-key: " + line.token.encode() + b"\r\n\r\n{"
    )
    await writer.drain()
    writer.close()

    response = await caller.post()

    assert response.status_code == 200
    assert len(demo.state.requests) == 1


async def test_the_upstream_hears_of_a_hang_up(caller: Caller) -> None:
    never = asyncio.Event()
    async with ScriptedUpstream(stream(start(), delta("a"), never)) as up:
        line = caller.open(upstream(up.url))
        response = await caller.stream()
        (call,) = line.calls

        await response.aclose()

        async with asyncio.timeout(20):
            await up.requests[0].gone.wait()
            await asyncio.wait({call})
        assert call.cancelled()


async def test_closing_a_line_cuts_its_stream_and_tells_the_upstream(
    caller: Caller,
) -> None:
    never = asyncio.Event()
    async with ScriptedUpstream(stream(start(), delta("a"), never)) as up:
        line = caller.open(upstream(up.url))
        response = await caller.stream()
        (call,) = line.calls
        received = bytearray()

        with pytest.raises(httpx2.RemoteProtocolError, match="incomplete"):  # noqa: PT012
            async for chunk in response.aiter_raw():
                received += chunk
                if delta("a") in received:
                    caller.gateway.close_line(line)

        assert bytes(received) == start() + delta("a")
        await up.requests[0].gone.wait()
        await asyncio.wait({call}, timeout=20)
        assert line.calls_in_flight == 0


async def test_a_call_whose_line_closes_before_the_answer_gets_an_error(
    caller: Caller,
) -> None:
    never = asyncio.Event()

    async def silent(_: object, __: object) -> None:
        await never.wait()

    async with ScriptedUpstream(silent) as up:
        line = caller.open(upstream(up.url))
        call = asyncio.ensure_future(caller.post())
        await up.wait_for_requests(1)

        caller.gateway.close_line(line)

        response = await call
        assert response.status_code == 503
        assert "stopped" in response.json()["error"]["message"]
        never.set()


async def test_our_token_stays_here_and_the_key_there(caller: Caller) -> None:
    async with ScriptedUpstream(whole(ANSWER, set_cookie="a=b")) as up:
        line = caller.open(upstream(up.url))

        first = await caller.post(cookie="c=d", proxy_authorization="Basic x")
        await caller.post()

    for sent in up.requests:
        assert sent.headers["x-api-key"] == REAL_KEY
        assert "authorization" not in sent.headers
        assert "cookie" not in sent.headers
        assert "proxy-authorization" not in sent.headers
        assert line.token not in repr(sent)
    assert REAL_KEY not in repr(first.headers) + first.text
    assert "set-cookie" not in first.headers
    assert REAL_KEY not in repr(line)
    assert line.token not in repr(line)


async def test_no_agent_asks_a_model_that_its_owner_may_not_use(
    caller: Caller, demo: DemoServer
) -> None:
    allowed = ("claude-haiku-*", "claude-opus-5-5")
    to = upstream(demo.url, allowed_models=allowed, model_prefix="cc/")
    headers = {"x-api-key": caller.open(to).token}
    bodies = [
        request(model=model)
        for model in ("claude-opus-5-5", "claude-sonnet-5-5", "cc/claude-haiku-4-5")
    ]
    hidden = {**request(model=None), "model": "claude-sonnet-5-5"}

    answers = [
        await caller.http.post("/v1/messages", headers=headers, json=body)
        for body in (*bodies, hidden)
    ]

    assert [answer.status_code for answer in answers] == [200, 403, 200, 403]
    assert answers[1].headers["x-should-retry"] == "false"
    assert "“claude-sonnet-5-5” may not" in answers[1].json()["error"]["message"]
    asked = [(call.body or {})["model"] for call in demo.state.model_calls]
    assert asked == ["cc/claude-opus-5-5", "cc/claude-haiku-4-5"]
