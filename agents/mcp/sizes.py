"""A bound on the answers of servers that speak HTTP.

Events are bounded by the `mcp` package; an answer that is one piece of JSON it reads
whole, however long it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

# Asked of servers, since a small compressed answer may be a huge one.
PLAIN = {"Accept-Encoding": "identity"}
TOO_LARGE = "the server sent an answer of more than {megabytes} MB"
COMPRESSED = "the server sent a compressed answer, which it was asked not to do"


def bound(response: httpx2.Response, limit: int) -> None:
    """Let the body fail at `limit` bytes; to be called before anything is read.

    It fails with httpx2.StreamError, which the transports take for a bad answer to one
    call; the connection lasts.
    """
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        return
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    is_compressed = response.headers.get("content-encoding", "identity") != "identity"
    response.stream = _Bounded(response.stream, 0 if is_compressed else limit)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if not self._limit:
            raise httpx2.StreamError(COMPRESSED)
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._limit:
                megabytes = self._limit // 1024**2
                raise httpx2.StreamError(TOO_LARGE.format(megabytes=megabytes))
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
