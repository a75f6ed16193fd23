"""Sends a stream on: events at once, held deltas when their window ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Self

from agents.tasks import spawn

from .events import Event, Joiner

Send = Callable[[bytes], Awaitable[None]]


class Relay:
    """Use as a context manager around a stream; `finish` sends what is still held.

    Two tasks send: the one that reads the stream, and one that wakes when held
    deltas are due. A lock keeps their order; whoever has it empties the joiner.
    """

    def __init__(self, send: Send, *, join_seconds: float) -> None:
        self._send = send
        self._joiner = Joiner(join_seconds)
        self._lock = asyncio.Lock()
        self._holds = asyncio.Event()

    async def push(self, events: Iterable[Event]) -> None:
        async with self._lock:
            out = b"".join([self._joiner.add(event) for event in events])
            if out:
                await self._send(out)
            if self._joiner.due_in_seconds is not None:
                self._holds.set()

    async def finish(self, rest: bytes = b"") -> None:
        async with self._lock:
            out = self._joiner.flush() + rest
            if out:
                await self._send(out)

    async def __aenter__(self) -> Self:
        self._flusher = spawn(self._flush_when_due(), name="gateway-flusher")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._flusher.cancel()

    async def _flush_when_due(self) -> None:
        while True:
            await self._holds.wait()
            # Asked again after each sleep: they may have left, and others come.
            while (seconds := self._joiner.due_in_seconds) is not None:
                if seconds > 0:
                    await asyncio.sleep(seconds)
                else:
                    await self.finish()
            self._holds.clear()
