"""Security modes and effects: the two scales on which every verdict is measured."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

ENTER_PLAN: Final = "EnterPlanMode"
HAND_IN_PLAN: Final = "ExitPlanMode"
# What a plan is written with; whoever only plans may write nothing else by them.
PLAN_WRITERS: Final = frozenset({"Write", "Edit"})


def plans_first(chosen: Collection[str] | None) -> bool:
    """Whether a mode with these tools plans until a person approves the plan.

    Its agents can hand a plan in, but don't choose for themselves when to plan.
    """
    return chosen is not None and HAND_IN_PLAN in chosen and ENTER_PLAN not in chosen


class SecurityMode(StrEnum):
    """What a session may do without anybody being asked; from tightest to loosest."""

    DENY = "deny"
    SANDBOX = "sandbox"
    ALLOWLIST = "allowlist"
    ASK = "ask"
    FULL = "full"

    @property
    def rank(self) -> int:
        return list(SecurityMode).index(self)

    def capped_by(self, ceiling: SecurityMode) -> SecurityMode:
        """The mode that is in force under a person's ceiling."""
        return min(self, ceiling, key=lambda mode: mode.rank)


class Effect(StrEnum):
    """What happens to a call; from loosest to strictest."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        return list(Effect).index(self)
