"""Once a minute: what the site does, as analytics that stay in its database."""

from __future__ import annotations

import asyncio
import logging

from agents.domain.site_analytics import app_heartbeat
from agents.tasks import spawn

from .database import in_database, own_database_thread

logger = logging.getLogger(__name__)

PULSE_SECONDS = 60.0


class Pulse:
    """Lives in one loop; its methods are called there."""

    def __init__(self, *, seconds: float = PULSE_SECONDS) -> None:
        self._seconds = seconds
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = spawn(self._beat_until_stopped(), name="pulse")

    async def stop(self) -> None:
        self._stopping.set()
        if self._task is not None:
            await self._task

    async def _beat_until_stopped(self) -> None:
        async with own_database_thread():
            while not await self._is_stopped_within(self._seconds):
                try:
                    await in_database(app_heartbeat)
                except Exception:
                    logger.exception("the heartbeat was not kept")

    async def _is_stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True
