"""What a rule would have done: the past calls that it speaks about.

Shown before a rule is saved, so that nobody allows more than they meant to.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .calls import ToolCall
from .paths import Place
from .rules import Rule, would_match


def matching_calls(
    rule: Rule, calls: Iterable[ToolCall], *, cwd: Path, home: Path | None = None
) -> tuple[ToolCall, ...]:
    """The calls of one session that the rule, standing alone, would have matched.

    Args:
        cwd: the session's working directory, where relative paths start.
        home: what `~` means in the session.
    """
    place = Place(cwd, home)
    return tuple(call for call in calls if would_match(rule, call, place))
