"""The steps of a turn as the stream shows them: begun, counted, completed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agents.domain import steps
from agents.domain.usage import price_of
from agents.gateway.ledger import Meter

from .database import in_database
from .turn import Turn


@dataclass(slots=True)
class StepWatch:
    """The step that is on; one more than the limit is not begun but ends the turn."""

    _meter: Meter = field(default_factory=Meter)
    _calls: int = 0
    _is_on: bool = False

    async def begin(self, turn: Turn, event: dict[str, Any]) -> None:
        await self.complete(turn)
        if turn.steps >= turn.step_limit:
            turn.stop("max_steps")
            return
        turn.step_ids.add(event["message"]["id"])
        turn.has_failed_step = False
        self._meter, self._calls, self._is_on = Meter(), 0, True
        self._meter.observe(event)
        await in_database(
            steps.begin_step, turn.run, step=turn.steps, max_steps=turn.step_limit
        )

    def observe(self, event: dict[str, Any]) -> None:
        self._meter.observe(event)
        block = event.get("content_block") or {}
        self._calls += block.get("type") == "tool_use"

    async def complete(self, turn: Turn) -> None:
        """The next message, or the turn's result, says that it is over."""
        if not self._is_on:
            return
        self._is_on = False
        usage = self._meter.usage()
        price = price_of(self._meter.model)
        await in_database(
            steps.complete_step,
            turn.run,
            step=turn.steps,
            status="failed" if turn.has_failed_step else "ok",
            tool_calls=self._calls,
            tokens=usage.total_tokens,
            cost_usd_micros=price.cost_usd_micros(usage) if price else None,
        )
