"""Work beside the turns that may be late or fail, but must never hold anything up.

A bounded queue with a few workers. A job that waits already is not queued twice; what
doesn't fit is dropped, since whoever asked looks again at the next occasion.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable

from agents.tasks import spawn

from .database import own_database_thread

logger = logging.getLogger(__name__)

CAPACITY = 200
Job = Callable[[], Awaitable[object]]


class Background:
    """Lives in one loop; its methods are called there."""

    def __init__(self, *, workers: int) -> None:
        self._count = workers
        self._keys: asyncio.Queue[Hashable] = asyncio.Queue()
        self._jobs: dict[Hashable, Job] = {}
        self._under_way: set[Hashable] = set()
        self._workers: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._workers = [
            spawn(self._work(), name=f"background-{number}")
            for number in range(self._count)
        ]

    def submit(self, key: Hashable, job: Job) -> bool:
        """Have `job` done, never two of one key at a time; the newest one counts.

        Returns: False when there is no room, or nobody to do it.
        """
        if not self._workers:
            return False
        if key not in self._jobs:
            if len(self._jobs) >= CAPACITY:
                logger.warning("too much work waits; %s is dropped", key)
                return False
            if key not in self._under_way:
                self._keys.put_nowait(key)
        self._jobs[key] = job
        return True

    async def stop(self) -> None:
        """Drop what waits and end what is under way."""
        workers, self._workers = self._workers, []
        self._jobs.clear()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        async with own_database_thread():
            while True:
                key = await self._keys.get()
                job = self._jobs.pop(key, None)
                if job is None:
                    continue
                self._under_way.add(key)
                try:
                    await job()
                except Exception:
                    logger.exception("background job %s failed", key)
                finally:
                    self._under_way.discard(key)
                if key in self._jobs:  # asked for again meanwhile
                    self._keys.put_nowait(key)
