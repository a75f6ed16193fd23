from __future__ import annotations

import pytest

from agents.policy.matchers import (
    find_matcher_fault,
    find_tool_fault,
    matched_field,
)
from agents.policy.modes import Effect
from agents.policy.rules import Rule
from agents.policy.tools import TOOLS


@pytest.mark.parametrize(
    ("tool", "matcher"),
    [
        ("Bash", ""),
        ("Bash", "git status:*"),
        ("Bash", "git status --short"),
        ("Bash", "ls *.txt"),
        ("Bash", "sudo rm:*"),
        ("Bash", "echo a && echo b"),
        ("Bash", "git commit -m 'a b':*"),
        ("Read", "**"),
        ("Write", "src/*.py"),
        ("Edit", "~/notes/?.md"),
        ("Glob", "docs/**"),
        ("fetch", "domain:docs.python.org"),
        ("mcp__openswarm__fetch", "domain:localhost"),
        ("Agent", "general-purpose"),
        ("*", ""),
        ("mcp__github", ""),
        ("mcp__github__search", ""),
        ("mcp__github__get_*", ""),
        ("TodoWrite", ""),
    ],
)
def test_rules_that_make_sense_are_taken(tool: str, matcher: str) -> None:
    rule = Rule(tool, Effect.ALLOW, matcher=matcher)

    assert find_tool_fault(rule) is None
    assert find_matcher_fault(rule) is None


@pytest.mark.parametrize(
    ("tool", "matcher", "words"),
    [
        ("Bash", ":*", "before the :*"),
        ("Bash", "git *", "Write git:* for any arguments"),
        ("Bash", "*", "Write git status:*"),
        ("Bash", "echo 'open", "can’t be read as a command"),
        ("Bash", "cd x && git:*", "Only one plain command"),
        ("Bash", "git > out:*", "Only one plain command"),
        ("Bash", "$(which git):*", "Only one plain command"),
        ("Bash", "$TOOL:*", "Only one plain command"),
        ("Bash", "ls *.txt:*", "each word must be certain"),
        ("Bash", "x" * 1001, "below 1000 characters"),
        ("Read", "src/[ab].py", "Only *, ** and ?"),
        ("Write", "src/{a,b}.py", "Only *, ** and ?"),
        ("Edit", "~root/x", "Another user’s home"),
        ("fetch", "docs.python.org", "Write domain:"),
        ("fetch", "domain:", "Write domain:"),
        ("fetch", "domain:https://x.org/", "Write domain:"),
        ("Agent", "any agent at all", "the kind of agent"),
        ("TodoWrite", "x", "leave this empty"),
        ("*", "git:*", "leave this empty"),
        ("mcp__github__search", "x", "leave this empty"),
    ],
)
def test_matchers_that_make_no_sense_are_explained(
    tool: str, matcher: str, words: str
) -> None:
    fault = find_matcher_fault(Rule(tool, Effect.DENY, matcher=matcher))

    assert fault is not None
    assert words in fault
    assert fault.endswith(".")


@pytest.mark.parametrize(
    ("tool", "effect", "words"),
    [
        ("bash", Effect.ALLOW, "There is no tool “bash”"),
        ("Bash(ls)", Effect.ALLOW, "Give a tool’s name"),
        ("", Effect.ALLOW, "Give a tool’s name"),
        ("WebFetch", Effect.ALLOW, "Use fetch instead."),
        ("AskUserQuestion", Effect.ALLOW, "no rule can allow it"),
    ],
)
def test_tools_that_no_rule_can_be_about_are_explained(
    tool: str, effect: Effect, words: str
) -> None:
    fault = find_tool_fault(Rule(tool, effect))

    assert fault is not None
    assert words in fault


def test_a_question_can_be_denied() -> None:
    assert find_tool_fault(Rule("AskUserQuestion", Effect.DENY)) is None


def test_the_fields_that_matchers_read() -> None:
    assert matched_field("Bash") == "command"
    assert matched_field("NotebookEdit") == "notebook_path"
    assert matched_field("mcp__openswarm__fetch") == "url"
    assert matched_field("TodoWrite") is None
    assert {"fetch", "Agent", "Bash"} <= set(TOOLS)
