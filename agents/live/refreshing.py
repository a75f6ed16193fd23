"""What many bells ring for is refreshed once: at the first, and when they have calmed.

Ten agents that start at once ring some sixty times at each of their owner's pages. A
rail costs as much as a hundred deltas, so one refresh for each bell would hold up the
words that stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agents.tasks import spawn

PAUSE_SECONDS = 0.5


class Refresher:
    """Calls `refresh` in a task of its own, never twice within the pause."""

    def __init__(self, refresh: Callable[[], Awaitable[None]], *, name: str) -> None:
        self._refresh = refresh
        self._name = name
        self._is_due = False
        self._is_stopped = False
        self._task: asyncio.Task[None] | None = None

    def ring(self) -> None:
        """Something may have changed: refresh now, or when the pause is over."""
        self._is_due = True
        if self._is_stopped:
            return
        if self._task is None or self._task.done():
            self._task = spawn(self._run(), name=self._name)

    def stop(self) -> None:
        """No refresh is begun any more, and one that runs is cancelled."""
        self._is_stopped = True
        if self._task is not None:
            self._task.cancel()

    async def until_calm(self) -> None:
        """Wait until every bell so far is answered."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        while self._is_due:
            self._is_due = False
            await self._refresh()
            await asyncio.sleep(PAUSE_SECONDS)
