"""Which tools a model is sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.policy.modes import SecurityMode
from agents.policy.tool_router import ToolContext, ToolRoute, route_tools
from agents.policy.tools import TOOLS, ToolClass, canonical_name

COMPLETE = "mcp__openswarm__complete_task"
FETCH = "mcp__openswarm__fetch"
SCREENSHOT = "mcp__openswarm-browser-agent__BrowserScreenshot"
MEMORY = "mcp__openswarm__memory_save"
LOOK, CHANGE = "mcp__own__look", "mcp__own__change"
KNOWN = [spec.full_name for spec in TOOLS.values()] + [CHANGE, LOOK]
CLASSES = {LOOK: ToolClass.NETWORK, CHANGE: ToolClass.WRITE}
ROUTE = ToolRoute(known=KNOWN, tool_classes=CLASSES)


def sent(**changes: object) -> list[str]:
    return list(route_tools(replace(ROUTE, **changes)))  # type: ignore[arg-type]


def names(tools: list[str]) -> set[str]:
    return {canonical_name(tool) for tool in tools}


def test_all_that_is_offered_comes_in_one_order_whatever_order_it_is_known_in() -> None:
    tools = sent()

    assert tools == sent(known=KNOWN[::-1])
    assert tools[:3] == ["Read", "Edit", "Write"]
    assert tools[-2:] == [CHANGE, LOOK]
    assert {"WebFetch", "Task", "CronCreate"}.isdisjoint(tools)


@pytest.mark.parametrize(
    "nothing", [{"native_tools": False}, {"security_mode": SecurityMode.DENY}]
)
def test_some_sessions_are_sent_nothing_at_all(nothing: dict[str, object]) -> None:
    assert sent(**nothing) == []
    assert sent(**nothing, extras=["Read"], chosen=["Read"]) == []


def test_a_mode_keeps_its_own_tools_and_complete_task() -> None:
    assert sent(chosen=["Glob", "Read", "fetch"]) == ["Read", "Glob", FETCH, COMPLETE]
    assert sent(chosen=[FETCH]) == [FETCH, COMPLETE]


@pytest.mark.parametrize("chosen", [[], ["Mystery"], ["WebFetch"]])
def test_an_empty_list_stays_empty(chosen: list[str]) -> None:
    assert sent(chosen=chosen) == []


def test_a_sandbox_is_sent_what_reads_or_notes_down() -> None:
    tools = sent(security_mode=SecurityMode.SANDBOX)

    assert {"Read", "Glob", "Grep", "TodoWrite", COMPLETE} <= set(tools)
    assert {"Write", "Edit", "Bash", "Agent", FETCH, MEMORY, LOOK, CHANGE}.isdisjoint(
        tools
    )
    with_network = sent(security_mode=SecurityMode.SANDBOX, sandbox_network_reads=True)
    assert {FETCH, LOOK} <= set(with_network)
    assert CHANGE not in with_network


def test_a_quick_chat_reads_and_asks() -> None:
    tools = sent(context=ToolContext.INTERACTIVE)

    assert {"Read", "Grep", "AskUserQuestion", FETCH, LOOK, COMPLETE} <= set(tools)
    assert {"Write", "Bash", "Agent", MEMORY, CHANGE}.isdisjoint(tools)


def test_extras_come_back_in_past_mode_and_context_but_not_past_security() -> None:
    tools = sent(
        chosen=["Read"], context=ToolContext.INTERACTIVE, extras=["Write", CHANGE]
    )
    assert tools == ["Read", "Write", COMPLETE, CHANGE]

    sandboxed = sent(
        chosen=["Read"], security_mode=SecurityMode.SANDBOX, extras=["Write"]
    )
    assert sandboxed == ["Read", COMPLETE]


def test_a_model_that_sees_nothing_is_sent_no_pictures() -> None:
    assert SCREENSHOT in sent()
    assert SCREENSHOT not in sent(vision=False)
    assert names(sent()) - names(sent(vision=False)) == {"BrowserScreenshot"}


def test_every_cut_of_the_table_keeps_complete_task() -> None:
    for name in sorted(names(sent())):
        assert COMPLETE in sent(chosen=[name]), name
