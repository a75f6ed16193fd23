"""Security modes and effects: the two scales on which every verdict is measured."""

from __future__ import annotations

from enum import StrEnum


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
