"""Many measured times, and the few numbers that describe them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

QUANTILES = range(0, 101)


@dataclass(frozen=True, slots=True)
class Samples:
    """Milliseconds, in ascending order."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Samples:
        return cls(tuple(sorted(values)))

    def __len__(self) -> int:
        return len(self.values)

    def at(self, percent: float) -> float:
        return percentile(self.values, percent)

    @property
    def median(self) -> float:
        return self.at(50)

    def as_json(self) -> dict[str, Any]:
        """All values where they are few, else their percentiles from 0 to 100."""
        if len(self) <= len(QUANTILES):
            return {"count": len(self), "values_ms": [round(v, 2) for v in self.values]}
        quantiles = [round(self.at(percent), 2) for percent in QUANTILES]
        return {"count": len(self), "percentiles_ms": quantiles}


def percentile(ascending: Sequence[float], percent: float) -> float:
    """The value below which `percent` of all lie, interpolated between neighbours.

    Raises: ValueError: there are no values, or there is no such percentage.
    """
    if not ascending:
        raise ValueError("nothing was measured")
    if not 0 <= percent <= 100:
        raise ValueError(f"{percent} is no percentage")
    position = (len(ascending) - 1) * percent / 100
    below = math.floor(position)
    above = math.ceil(position)
    share = position - below
    return ascending[below] * (1 - share) + ascending[above] * share
