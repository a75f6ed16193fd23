"""What goes wrong upstream is told at once, and reaches the caller as an error."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpx2
import pytest

from agents.demo.server import DemoServer
from agents.gateway.lines import Trouble

from .caller import REAL_KEY, Caller, request, upstream
from .upstream import ScriptedUpstream, delta, end, sse, start, stream, whole


def error(kind: str, message: str = "Nope") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("status", "kind", "is_hopeless"),
    [
        (400, "bad_request", False),
        (401, "auth", True),
        (402, "bad_request", True),
        (403, "auth", True),
        (404, "bad_request", False),
        (413, "bad_request", False),
        (429, "rate_limit", False),
        (500, "server_error", False),
        (503, "server_error", False),
        (529, "overloaded", False),
    ],
)
async def test_a_refusal_is_reported_and_passed_on(
    caller: Caller, status: int, kind: str, is_hopeless: bool
) -> None:
    body = error("some_error")
    async with ScriptedUpstream(whole(body, status=status, request_id="r")) as up:
        caller.open(upstream(up.url))

        response = await caller.post()

    (trouble,) = caller.troubles
    assert (response.status_code, response.json()) == (status, body)
    assert response.headers["request-id"] == "r"
    assert response.headers.get("x-should-retry") == ("false" if is_hopeless else None)
    assert (trouble.kind, trouble.status) == (kind, status)
    assert trouble.is_hopeless is is_hopeless
    assert f"HTTP {status}: Nope" in trouble.message
    assert trouble.retry_after_seconds is None


async def test_a_bad_key_says_where_to_correct_it(
    caller: Caller, demo: DemoServer
) -> None:
    demo.state.required_key = "another"
    caller.open(upstream(demo.url))

    response = await caller.post()

    assert response.status_code == 401
    assert caller.troubles == [
        Trouble(
            "auth",
            401,
            "The provider refused the key (HTTP 401: invalid x-api-key). Check it in "
            "Settings, Providers.",
            is_hopeless=True,
        )
    ]


async def test_retry_after_is_told_and_passed_on(
    caller: Caller, demo: DemoServer
) -> None:
    caller.open(upstream(demo.url))

    response = await caller.post(request("demo: error 429 retry-after 7"))

    (trouble,) = caller.troubles
    assert (trouble.kind, trouble.retry_after_seconds) == ("rate_limit", 7)
    assert response.headers["retry-after"] == "7"


async def test_a_quoted_key_is_blotted_out(caller: Caller) -> None:
    body = error("authentication_error", f"bad key {REAL_KEY}")
    async with ScriptedUpstream(whole(body, status=401)) as up:
        caller.open(upstream(up.url))

        response = await caller.post()

    assert response.json() == error("authentication_error", "bad key ***")
    assert REAL_KEY not in caller.troubles[0].message


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"", b"x" * 200_000])
async def test_an_error_in_no_known_shape_gets_one(caller: Caller, body: bytes) -> None:
    async with ScriptedUpstream(
        whole(body, status=404, content_type="text/html")
    ) as up:
        caller.open(upstream(up.url, api_key=""))

        response = await caller.post()

    assert response.headers["content-type"] == "application/json"
    assert response.json() == error(
        "not_found_error",
        "The provider refused the request (HTTP 404: no readable reason given).",
    )


async def test_a_refused_connection_says_what_to_check(caller: Caller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    caller.open(upstream(f"http://127.0.0.1:{port}"))

    response = await caller.post()

    sentence = (
        f"127.0.0.1:{port} refused the connection. Check that it is running, and the "
        "provider's base URL."
    )
    assert response.status_code == 502
    assert response.json() == error("api_error", sentence)
    assert "x-should-retry" not in response.headers
    assert caller.troubles == [Trouble("unreachable", None, sentence)]


async def test_a_private_address_is_refused_when_connecting(
    caller: Caller, demo: DemoServer
) -> None:
    caller.open(upstream(demo.url, allow_private=False))

    response = await caller.post()

    assert response.status_code == 502
    assert response.headers["x-should-retry"] == "false"
    (trouble,) = caller.troubles
    assert trouble.is_hopeless
    assert "private address" in trouble.message
    assert demo.state.requests == []


@pytest.mark.parametrize("url", ["", "ftp://x", "http://x:port"])
async def test_a_base_url_that_is_none_is_hopeless(caller: Caller, url: str) -> None:
    caller.open(upstream(url))

    response = await caller.post()

    assert response.status_code == 502
    assert caller.troubles[0].is_hopeless


async def test_a_cut_stream_is_cut_for_the_caller_too(caller: Caller) -> None:
    async with ScriptedUpstream(stream(start(), delta("a"), ends=False)) as up:
        caller.open(upstream(up.url))
        response = await caller.stream()
        received = bytearray()

        with pytest.raises(httpx2.RemoteProtocolError):  # noqa: PT012
            async for chunk in response.aiter_raw():
                received += chunk

    assert bytes(received) == start() + delta("a")
    assert [trouble.kind for trouble in caller.troubles] == ["cut"]


async def test_a_stream_that_ends_too_early_is_reported(caller: Caller) -> None:
    async with ScriptedUpstream(stream(start(), delta("a"))) as up:
        caller.open(upstream(up.url))

        response = await caller.post()

    assert response.content == start() + delta("a")
    (trouble,) = caller.troubles
    assert trouble.kind == "cut"
    assert "too early" in trouble.message


async def test_a_connection_closed_without_an_answer_is_an_error(
    caller: Caller,
) -> None:
    async def closes(_: object, __: object) -> None:
        return

    async with ScriptedUpstream(closes) as up:
        caller.open(upstream(up.url))

        response = await caller.post()

    assert response.status_code == 502
    assert [trouble.kind for trouble in caller.troubles] == ["cut"]


async def test_a_silent_upstream_times_out(caller_with_short_patience: Caller) -> None:
    caller = caller_with_short_patience
    never = asyncio.Event()

    async def silent(_: object, __: object) -> None:
        await never.wait()

    async with ScriptedUpstream(silent) as up:
        caller.open(upstream(up.url))

        response = await caller.post()
        never.set()

    assert response.status_code == 502
    (trouble,) = caller.troubles
    assert trouble.kind == "unreachable"
    assert "did not answer in time" in trouble.message


async def test_a_stream_that_falls_silent_is_cut(
    caller_with_short_patience: Caller,
) -> None:
    caller = caller_with_short_patience
    never = asyncio.Event()
    async with ScriptedUpstream(stream(start(), never)) as up:
        caller.open(upstream(up.url))

        with pytest.raises(httpx2.RemoteProtocolError):
            await caller.post()
        never.set()

    assert [trouble.kind for trouble in caller.troubles] == ["cut"]


@pytest.mark.parametrize(
    ("details", "kind", "is_hopeless"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded", False),
        ({"type": "rate_limit_error"}, "rate_limit", False),
        ({"type": "authentication_error"}, "auth", True),
        ({"type": "invalid_request_error"}, "bad_request", False),
        ({"type": "api_error"}, "server_error", False),
        ({}, "server_error", False),
        ("text", "server_error", False),
    ],
)
async def test_an_error_in_the_stream_is_reported_once(
    caller: Caller, details: Any, kind: str, is_hopeless: bool
) -> None:
    event = sse({"type": "error", "error": details})
    async with ScriptedUpstream(stream(start(), event)) as up:
        caller.open(upstream(up.url))

        response = await caller.post()

    assert response.content == start() + event
    (trouble,) = caller.troubles
    assert (trouble.kind, trouble.is_hopeless) == (kind, is_hopeless)


async def test_a_redirect_is_not_followed(caller: Caller) -> None:
    async with ScriptedUpstream(
        whole(b"", status=301, location="https://elsewhere.example/v1/messages")
    ) as up:
        caller.open(upstream(up.url))

        response = await caller.post()

    assert response.status_code == 502
    assert len(up.requests) == 1
    (trouble,) = caller.troubles
    assert trouble.is_hopeless
    assert "sends calls on to elsewhere.example" in trouble.message


async def test_a_web_page_is_no_answer(caller: Caller) -> None:
    async with ScriptedUpstream(whole(b"<html>", content_type="text/html")) as up:
        caller.open(upstream(up.url))

        response = await caller.post()

    assert response.status_code == 502
    assert "no model's answer" in caller.troubles[0].message


async def test_failed_counts_are_nobodys_trouble(caller: Caller) -> None:
    refusal = whole(error("authentication_error"), status=401, retry_after="9")
    async with ScriptedUpstream(refusal) as up:
        caller.open(upstream(up.url))
        response = await caller.post(None, "/v1/messages/count_tokens")

    unreachable = await caller.post(None, "/v1/messages/count_tokens")

    assert (response.status_code, unreachable.status_code) == (401, 502)
    assert caller.troubles == []


async def test_a_failing_listener_does_not_spoil_the_call(
    caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(trouble: Trouble) -> None:
        raise RuntimeError("listener")

    async with ScriptedUpstream(whole(error("api_error"), status=500)) as up:
        line = caller.open(upstream(up.url))
        line.on_trouble = fails

        response = await caller.post()

    assert response.status_code == 500
    assert response.json() == error("api_error")
    assert "trouble listener failed" in caplog.text


async def test_nobody_has_to_listen(caller: Caller) -> None:
    async with ScriptedUpstream(whole(error("api_error"), status=500)) as up:
        caller.open(upstream(up.url)).on_trouble = None

        response = await caller.post()

    assert response.status_code == 500


async def test_a_fault_of_our_own_is_logged_and_answered(
    caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    # A body that decodes to an odd message: no provider does this on purpose.
    async with ScriptedUpstream(whole(b'{"id": 1, "model": "m"}')) as up:
        caller.open(upstream(up.url, model_prefix=None))

        response = await caller.post(request(stream=None))

    assert response.status_code == 500
    assert response.json()["error"]["type"] == "api_error"
    assert "a model call failed" in caplog.text
    assert REAL_KEY not in caplog.text
    assert caller.line.token not in caplog.text


async def test_a_refused_key_holds_the_other_lines_back(
    caller: Caller,
) -> None:
    refusal = whole(error("rate_limit_error"), status=429, retry_after="600")
    async with (
        ScriptedUpstream(refusal, stream(start(), end())) as up,
        Caller(caller.gateway, caller.session_id) as other,
        Caller(caller.gateway, caller.session_id) as stranger,
    ):
        caller.open(upstream(up.url))
        await caller.post()
        waiting_line = other.open(upstream(up.url))

        call = asyncio.ensure_future(other.post())
        async with asyncio.timeout(20):
            await other.trouble_came.wait()

        (trouble,) = other.troubles
        assert (trouble.kind, len(up.requests)) == ("rate_limit", 1)
        assert trouble.retry_after_seconds is not None
        assert trouble.retry_after_seconds <= 60
        stranger.open(upstream(up.url, api_key="another"))
        assert (await stranger.post()).status_code == 200
        (waiting,) = waiting_line.calls
        counted = await other.post(None, "/v1/messages/count_tokens")
        assert counted.status_code == 200
        call.cancel()
        await asyncio.wait({waiting}, timeout=20)
        assert waiting.cancelled()
        assert len(up.requests) == 3


async def test_a_held_call_goes_on_when_its_time_has_come(caller: Caller) -> None:
    refusal = whole(error("rate_limit_error"), status=429, retry_after_ms="300")
    async with ScriptedUpstream(refusal, stream(start(), end())) as up:
        caller.open(upstream(up.url))
        await caller.post()

        response = await caller.post()

    assert response.status_code == 200
