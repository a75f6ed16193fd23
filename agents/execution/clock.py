"""How long a turn has worked: time in which it waits for a person is left out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from agents.conf import Conf


def effort_seconds(effort: str, numbers: Conf) -> float:
    return {
        "low": numbers.low_effort_seconds,
        "medium": numbers.medium_effort_seconds,
        "high": numbers.high_effort_seconds,
        "max": numbers.max_effort_seconds,
    }[effort]


@dataclass(slots=True)
class WorkClock:
    """Stands while anybody holds it; `before_seconds` is from before a pause."""

    before_seconds: float = 0
    now: Callable[[], float] = time.monotonic
    _began_at: float | None = None
    _has_started: bool = False
    _holders: int = 0
    _runs: asyncio.Event = field(default_factory=asyncio.Event)
    _stands: asyncio.Event = field(default_factory=asyncio.Event)

    def start(self) -> None:
        """The work begins; what came before, such as starting a process, is free."""
        self._has_started = True
        self._run_or_stand()

    def hold(self) -> None:
        self._holders += 1
        self._run_or_stand()

    def release(self) -> None:
        self._holders -= 1
        self._run_or_stand()

    def _run_or_stand(self) -> None:
        is_running = self._has_started and not self._holders
        if is_running and self._began_at is None:
            self._began_at = self.now()
            self._stands.clear()
            self._runs.set()
        elif not is_running and self._began_at is not None:
            self.before_seconds, self._began_at = self.worked_seconds, None
            self._runs.clear()
            self._stands.set()

    @property
    def worked_seconds(self) -> float:
        running = 0.0 if self._began_at is None else self.now() - self._began_at
        return self.before_seconds + running

    @property
    def worked_ms(self) -> int:
        return int(self.worked_seconds * 1000)

    async def until(self, limit_seconds: float) -> None:
        """Return once that much has been worked, while nobody holds the clock."""
        while True:
            await self._runs.wait()
            left = limit_seconds - self.worked_seconds
            if left <= 0:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stands.wait(), left)
