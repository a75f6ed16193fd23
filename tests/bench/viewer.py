"""A person's browser, as far as the bench needs one: a socket that reads stamps.

Autobahn, which comes with Daphne, is the client. It runs either on asyncio or on
Twisted in one process, and Daphne's is on Twisted; so this is only imported by the
bench itself, in whose process there is no Django.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from autobahn.asyncio.websocket import WebSocketClientFactory, WebSocketClientProtocol

from .stamps import Sightings

PATIENCE_SECONDS = 90.0

# The rail previews the words of other sessions, so only the transcript is read: text
# that is appended to a message, and whole messages.
_TRANSCRIPT = re.compile(
    r'"beforeend:#message-[^"]*-text">[^<]*<|<article id="message-.*?</article>', re.S
)


def transcript_of(frame: str) -> str:
    return "\n".join(_TRANSCRIPT.findall(frame))


class Viewer:
    """One open page: what came over its socket."""

    def __init__(self) -> None:
        self.sightings = Sightings()
        self.frames = 0
        self._news = asyncio.Event()

    def forget(self) -> None:
        """From here on only words that are new count."""
        self.sightings = Sightings(since=time.monotonic_ns())

    def receive(self, frame: str) -> None:
        self.frames += 1
        self.sightings.read(transcript_of(frame))
        self._news.set()

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def until_words(self, count: int) -> None:
        await self.until(lambda: len(self.sightings.seen) >= count, f"{count} words")

    @property
    def first_seen_at(self) -> int:
        return min(self.sightings.seen.values())


@asynccontextmanager
async def watching(address: str, path: str, cookie: str) -> AsyncIterator[Viewer]:
    """Open a page's socket; the viewer has the snapshot's words when this yields."""
    viewer = Viewer()
    transport, _ = await _connect(address, path, cookie, viewer)
    try:
        await viewer.until(lambda: viewer.frames > 0, "the snapshot")
        yield viewer
    finally:
        transport.close()


async def _connect(address: str, path: str, cookie: str, viewer: Viewer) -> Any:
    at = urlsplit(address)
    factory = WebSocketClientFactory(
        f"ws://{at.netloc}{path}", origin=address, headers={"Cookie": cookie}
    )
    factory.protocol = partial(_Protocol, viewer)  # type: ignore[assignment]  # any maker
    loop = asyncio.get_running_loop()
    return await loop.create_connection(factory, str(at.hostname), int(at.port or 80))


class _Protocol(WebSocketClientProtocol):
    def __init__(self, viewer: Viewer) -> None:
        super().__init__()
        self._viewer = viewer

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N802, N803  Autobahn's names
        self._viewer.receive(payload.decode())
