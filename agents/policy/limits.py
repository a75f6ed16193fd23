"""How far one turn may go, as plain numbers: steps, and shares of a budget."""

from __future__ import annotations

from enum import StrEnum

EFFORT_STEPS = {"low": 5, "medium": 20, "high": 50, "max": 200}
MOST_STEPS = 200
WARN_PERCENT = 80


class BudgetLevel(StrEnum):
    FREE = "free"
    NEAR = "near"
    USED_UP = "used_up"


def step_limit(effort: str, max_steps: int | None = None) -> int:
    """The steps of one turn: what was asked for, else what the effort stands for."""
    wanted = EFFORT_STEPS[effort] if max_steps is None else max_steps
    return min(max(wanted, 1), MOST_STEPS)


def percent_of(spent_usd_micros: int, limit_usd_micros: int) -> int:
    """Rounded down, so that 100 means that nothing is left. Of nothing, all is used."""
    if limit_usd_micros <= 0:
        return 100
    return spent_usd_micros * 100 // limit_usd_micros


def budget_level(spent_usd_micros: int, limit_usd_micros: int) -> BudgetLevel:
    percent = percent_of(spent_usd_micros, limit_usd_micros)
    if percent >= 100:
        return BudgetLevel.USED_UP
    return BudgetLevel.NEAR if percent >= WARN_PERCENT else BudgetLevel.FREE


def next_limit(
    base_usd_micros: int, limit_usd_micros: int, spent_usd_micros: int
) -> int:
    """The limit after a raise: the next multiple of the one that was set.

    An answer may have cost more than a whole step; who agrees means going on.
    """
    base = max(base_usd_micros, 1)
    return (max(limit_usd_micros, spent_usd_micros) // base + 1) * base
