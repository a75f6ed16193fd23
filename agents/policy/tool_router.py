"""Which tools a model is sent: from all that are known to what is left, in one order.

What is left out here doesn't exist for the model. Nothing is allowed by it: each call
is still judged by `decision.decide`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from .modes import PLAN_WRITERS, SecurityMode, plans_first
from .tools import (
    COMPLETE_TASK,
    TOOLS,
    ToolClass,
    canonical_name,
    classify_tool,
    find_tool,
)

ASK_PERSON: Final = "AskUserQuestion"
# What they answer with is a picture.
PICTURE_TOOLS: Final = frozenset({"BrowserScreenshot"})
_SANDBOX: Final = frozenset({ToolClass.READ, ToolClass.INTERNAL})
_QUICK: Final = frozenset({ToolClass.READ, ToolClass.NETWORK, ToolClass.INTERNAL})


class ToolContext(StrEnum):
    AGENTIC = "agentic"  # an agent at work: all that is left
    INTERACTIVE = "interactive"  # a quick chat: reading, and asking


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRoute:
    """All that the choice of tools depends on."""

    known: Collection[str]
    """Every tool that could be offered here, by the names that the model sees."""
    native_tools: bool = True
    """Whether the model can call tools at all."""
    vision: bool = True
    chosen: Collection[str] | None = None
    """The tools of the session's mode; None: all."""
    security_mode: SecurityMode = SecurityMode.ASK
    sandbox_network_reads: bool = False
    context: ToolContext = ToolContext.AGENTIC
    extras: Collection[str] = ()
    """Tools that the session has besides, whatever its mode and context leave out."""
    tool_classes: Mapping[str, ToolClass] = field(default_factory=dict)
    """The classes of tools of configured servers."""


def route_tools(route: ToolRoute) -> tuple[str, ...]:
    """The tools to send, in the table's order, then others by name."""
    usable = _usable(route)
    kept = [name for name in usable if _is_kept(name, route)]
    extras = [name for name in usable if _is_among(name, route.extras)]
    if kept or extras:
        extras += [name for name in usable if canonical_name(name) == COMPLETE_TASK]
    return _in_order({*kept, *extras})


def _usable(route: ToolRoute) -> list[str]:
    """What the model could use and the security mode doesn't rule out in any case."""
    if not route.native_tools or route.security_mode == SecurityMode.DENY:
        return []
    return [
        name
        for name in route.known
        if _is_offered(name)
        and (route.vision or canonical_name(name) not in PICTURE_TOOLS)
        and _fits_security(name, route)
    ]


def _is_offered(name: str) -> bool:
    spec = find_tool(name)
    return spec.offered if spec else name.startswith("mcp__")


def _fits_security(name: str, route: ToolRoute) -> bool:
    if route.security_mode != SecurityMode.SANDBOX or _writes_plan(name, route):
        return True
    tool_class = classify_tool(name, route.tool_classes)
    is_read = tool_class == ToolClass.NETWORK and route.sandbox_network_reads
    return tool_class in _SANDBOX or is_read


def _is_kept(name: str, route: ToolRoute) -> bool:
    if _writes_plan(name, route):
        return True
    if route.chosen is not None and not _is_among(name, route.chosen):
        return False
    if route.context == ToolContext.AGENTIC:
        return True
    tool_class = classify_tool(name, route.tool_classes)
    return tool_class in _QUICK or name == ASK_PERSON


def _writes_plan(name: str, route: ToolRoute) -> bool:
    """What only plans needs these for its plan; the gate refuses every other file."""
    return name in PLAN_WRITERS and plans_first(route.chosen)


def _is_among(name: str, names: Collection[str]) -> bool:
    return name in names or canonical_name(name) in names


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=_place))


def _place(name: str) -> tuple[int, str]:
    return _PLACES.get(canonical_name(name), len(_PLACES)), name


_PLACES: Final = {name: place for place, name in enumerate(TOOLS)}
