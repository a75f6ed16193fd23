"""The bound on answers, without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest

from agents.mcp.sizes import COMPRESSED, bound


class Body(httpx2.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"12345"
        yield b"67890"


def answer(**headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(200, headers=named, stream=Body())


async def test_an_answer_up_to_the_limit_is_read() -> None:
    response = answer(content_type="application/json")
    bound(response, 10)

    assert await response.aread() == b"1234567890"


async def test_a_longer_answer_fails_while_it_is_read() -> None:
    response = answer(content_type="application/json")
    bound(response, 9)

    with pytest.raises(httpx2.StreamError):
        await response.aread()


async def test_a_compressed_answer_is_not_unpacked() -> None:
    response = answer(content_type="application/json", content_encoding="gzip")
    bound(response, 10)

    with pytest.raises(httpx2.StreamError, match=COMPRESSED):
        await response.aread()


async def test_a_stream_of_events_may_last() -> None:
    response = answer(content_type="text/event-stream")
    bound(response, 1)

    assert await response.aread() == b"1234567890"
