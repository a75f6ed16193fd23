from __future__ import annotations

import pytest

from agents.policy.limits import BudgetLevel, budget_level, percent_of, step_limit


@pytest.mark.parametrize(
    ("effort", "max_steps", "steps"),
    [
        ("low", None, 5),
        ("medium", None, 20),
        ("high", None, 50),
        ("max", None, 200),
        ("low", 7, 7),
        ("max", 1, 1),
        ("low", 0, 1),
        ("medium", 999, 200),
    ],
)
def test_an_explicit_limit_overrides_the_effort(
    effort: str, max_steps: int | None, steps: int
) -> None:
    assert step_limit(effort, max_steps) == steps


@pytest.mark.parametrize(
    ("spent", "limit", "level"),
    [
        (0, 100, BudgetLevel.FREE),
        (79, 100, BudgetLevel.FREE),
        (80, 100, BudgetLevel.NEAR),
        (99, 100, BudgetLevel.NEAR),
        (799_999, 1_000_000, BudgetLevel.FREE),
        (999_999, 1_000_000, BudgetLevel.NEAR),
        (100, 100, BudgetLevel.USED_UP),
        (130, 100, BudgetLevel.USED_UP),
        (0, 0, BudgetLevel.USED_UP),
    ],
)
def test_a_budget_is_free_near_its_end_or_used_up(
    spent: int, limit: int, level: BudgetLevel
) -> None:
    assert budget_level(spent, limit) == level


def test_percent_is_rounded_down() -> None:
    assert percent_of(999_999, 1_000_000) == 99
    assert percent_of(1_300_000, 1_000_000) == 130
