"""How much is measured: everything, or a glance that shows whether it works."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

DELTAS_PER_SECOND = 20.0


@dataclass(frozen=True, slots=True)
class Plan:
    levels: tuple[int, ...] = (1, 10, 20)
    """How many sessions stream at once, ascending."""
    stream_seconds: float = 12
    first_token_rounds: int = 7
    gateway_levels: tuple[int, ...] = (1, 10)
    gateway_seconds: float = 8

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "deltas_per_second": DELTAS_PER_SECOND}

    @property
    def stream_words(self) -> int:
        return round(self.stream_seconds * DELTAS_PER_SECOND)

    @property
    def gateway_words(self) -> int:
        return round(self.gateway_seconds * DELTAS_PER_SECOND)


QUICK = Plan(
    levels=(1, 3),
    stream_seconds=4,
    first_token_rounds=2,
    gateway_levels=(1,),
    gateway_seconds=3,
)
