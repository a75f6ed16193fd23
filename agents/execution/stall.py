"""Says so when the model's line has been silent for a while, once per silence."""

from __future__ import annotations

import asyncio
from uuid import UUID

from agents.conf import conf
from agents.domain import notices
from agents.gateway.lines import Line
from agents.models import Run

from .database import in_database

LOOKS_PER_SILENCE = 4
WENT_ON = "The model was silent for a while, then went on."
ENDED = "The model was silent until the turn ended."


class StallWatch:
    def __init__(self, run: Run, line: Line) -> None:
        self._run = run
        self._line = line
        self._notice_id: UUID | None = None

    async def run(self) -> None:
        """Look until cancelled; then `close` must be called."""
        while True:
            await asyncio.sleep(conf().stalled_after_seconds / LOOKS_PER_SILENCE)
            seconds = self._silent_seconds()
            if seconds >= conf().stalled_after_seconds:
                await self._say_stalled(seconds)
            else:
                await self._say_over(WENT_ON)

    def _silent_seconds(self) -> float:
        """A line without a call in flight is not silent: nobody asked the model."""
        if not self._line.calls_in_flight:
            return 0
        return asyncio.get_running_loop().time() - self._line.last_byte_at

    async def _say_stalled(self, seconds: float) -> None:
        if self._notice_id is not None:
            return
        text = (
            f"The model has sent nothing for {round(seconds)} seconds. You can wait or"
            " press Stop."
        )
        notice = await in_database(notices.add_notice, self._run, "stalled", text)
        self._notice_id = notice.pk

    async def _say_over(self, text: str) -> None:
        if self._notice_id is None:
            return
        notice_id, self._notice_id = self._notice_id, None
        await in_database(notices.update_notice, notice_id, text, kind="info")

    async def close(self) -> None:
        """The turn is over; nobody needs to wait any more."""
        await self._say_over(ENDED)
