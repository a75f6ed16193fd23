from __future__ import annotations

import re

import pytest

from agents.policy.tools import (
    FULL_TOOLS,
    TOOLS,
    ToolClass,
    ToolPolicy,
    canonical_name,
    classify_mcp_tool,
    classify_tool,
    find_tool,
    get_all_tool_names,
    get_effective_policy,
    is_reserved_server_name,
)


def test_the_table_keeps_the_22_names_of_the_original():
    assert len(FULL_TOOLS) == 22
    assert set(FULL_TOOLS) <= set(TOOLS)


def test_the_offered_names_are_those_that_work_here():
    assert get_all_tool_names() == [
        *("Read", "Edit", "Write", "Bash", "Glob", "Grep", "AskUserQuestion"),
        *("NotebookEdit", "TodoWrite", "EnterPlanMode", "ExitPlanMode", "Agent"),
        "Skill",
    ]


def test_tools_of_our_own_servers_are_offered_where_the_server_runs():
    names = get_all_tool_names(["openswarm", "openswarm-invoke-agent"])

    assert names[-9:] == [
        "mcp__openswarm-invoke-agent__InvokeAgent",
        "mcp__openswarm__fetch",
        "mcp__openswarm__complete_task",
        "mcp__openswarm__list_tasks",
        "mcp__openswarm__create_task",
        "mcp__openswarm__update_task",
        "mcp__openswarm__memory_search",
        "mcp__openswarm__memory_save",
        "mcp__openswarm__memory_delete",
    ]


def test_every_tool_that_is_not_offered_says_why_and_names_real_replacements():
    for spec in TOOLS.values():
        assert re.fullmatch(r"[A-Z].*[a-z]", spec.summary)
        if spec.why_not is not None:
            assert re.fullmatch(r"[A-Z].*\.", spec.why_not)
        if spec.replacement is not None:
            assert TOOLS[spec.replacement].offered


def test_no_offered_tool_has_an_unknown_class():
    assert {spec.tool_class for spec in TOOLS.values()} == set(ToolClass) - {
        ToolClass.UNKNOWN
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Read", ToolClass.READ),
        ("Bash", ToolClass.EXECUTE),
        ("mcp__openswarm__fetch", ToolClass.NETWORK),
        ("mcp__openswarm__complete_task", ToolClass.INTERNAL),
        ("mcp__openswarm__memory_save", ToolClass.INTERNAL_WRITE),
        ("mcp__github__search", ToolClass.NETWORK),
        ("mcp__github__other", ToolClass.UNKNOWN),
        ("mcp__openswarm__unheard_of", ToolClass.UNKNOWN),
        ("mcp__openswarm__Read", ToolClass.UNKNOWN),
        ("mcp__other__fetch", ToolClass.UNKNOWN),
        ("fetch", ToolClass.UNKNOWN),
        ("read", ToolClass.UNKNOWN),
        ("", ToolClass.UNKNOWN),
    ],
)
def test_names_are_classified(name, expected):
    assert classify_tool(name, {"mcp__github__search": ToolClass.NETWORK}) is expected


def test_extra_classes_never_change_a_built_in_tool():
    extra = {"Bash": ToolClass.READ, "Nonsense": ToolClass.READ}

    assert classify_tool("Bash", extra) is ToolClass.EXECUTE
    assert classify_tool("Nonsense", extra) is ToolClass.UNKNOWN


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"readOnlyHint": True}, ToolClass.NETWORK),
        ({"readOnlyHint": "true"}, ToolClass.WRITE),
        ({"readOnlyHint": False, "destructiveHint": False}, ToolClass.WRITE),
        ({}, ToolClass.WRITE),
        (None, ToolClass.WRITE),
    ],
)
def test_mcp_tools_are_classified_by_their_annotations(annotations, expected):
    assert classify_mcp_tool(annotations) is expected


def test_our_own_tools_go_by_their_names_in_the_table():
    full = "mcp__openswarm-browser-agent__BrowserClick"

    assert canonical_name(full) == "BrowserClick"
    assert find_tool(full) is TOOLS["BrowserClick"]
    assert TOOLS["BrowserClick"].full_name == full
    assert canonical_name("mcp__github__BrowserClick") == "mcp__github__BrowserClick"


def test_policies_are_found_by_the_tables_name_and_by_the_full_one():
    full = "mcp__openswarm-invoke-agent__InvokeAgent"
    policies = {"InvokeAgent": ToolPolicy.ASK, "mcp__x__y": ToolPolicy.DENY}

    assert get_effective_policy(full, policies) is ToolPolicy.ASK
    assert get_effective_policy("mcp__x__y", policies) is ToolPolicy.DENY
    assert get_effective_policy("Read", policies) is None


def test_nobody_else_may_name_a_server_like_ours():
    assert is_reserved_server_name("openswarm")
    assert is_reserved_server_name("openswarm-tasks")
    assert not is_reserved_server_name("openswarming")
    assert not is_reserved_server_name("github")
