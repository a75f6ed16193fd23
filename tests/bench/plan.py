"""How much is measured: everything, or a glance that shows whether it works."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

DELTAS_PER_SECOND = 20.0
START_SECONDS = 0.5  # until one more session streams


@dataclass(frozen=True, slots=True)
class Plan:
    levels: tuple[int, ...] = (1, 10, 20)
    """How many sessions stream at once, ascending."""
    stream_seconds: float = 12
    first_token_rounds: int = 7
    gateway_levels: tuple[int, ...] = (1, 10)
    gateway_seconds: float = 8
    search_sessions: int = 10_000
    search_messages: int = 200_000
    search_rounds: int = 30
    """Queries of each kind."""

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "deltas_per_second": DELTAS_PER_SECOND}

    def stream_words(self, sessions: int) -> int:
        """Longer where many begin, so that all of them stream long enough together."""
        seconds = self.stream_seconds + sessions * START_SECONDS
        return round(seconds * DELTAS_PER_SECOND)

    @property
    def gateway_words(self) -> int:
        return round(self.gateway_seconds * DELTAS_PER_SECOND)


QUICK = Plan(
    levels=(1, 3),
    stream_seconds=4,
    first_token_rounds=2,
    gateway_levels=(1,),
    gateway_seconds=3,
    search_sessions=300,
    search_messages=6_000,
    search_rounds=5,
)
