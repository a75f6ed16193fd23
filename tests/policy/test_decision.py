from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.policy.decision import (
    GUARD_NAMES,
    Effect,
    PolicyContext,
    Rule,
    SecurityMode,
    ToolCall,
    ToolClass,
    ToolPolicy,
    decide,
)
from agents.policy.tools import get_all_tool_names

MCP_CLASSES = {
    "mcp__github__search": ToolClass.NETWORK,
    "mcp__github__create": ToolClass.WRITE,
}
SERVERS = ["openswarm"]
EVERY_TOOL = frozenset([*get_all_tool_names(SERVERS), *MCP_CLASSES, "Mystery"])
HERE = Path("/srv/sessions/1")


def context(mode: SecurityMode = SecurityMode.ASK, **changes) -> PolicyContext:
    base = PolicyContext(
        security_mode=mode,
        ceiling=SecurityMode.FULL,
        offered_tools=EVERY_TOOL,
        cwd=HERE / "work",
        roots=(HERE / "work",),
        home=HERE / "home",
        plan_dir=HERE / "home/plans",
        tool_classes=MCP_CLASSES,
    )
    return replace(base, **changes)


READ = ToolCall("Read", {"file_path": "a.txt"})
WRITE = ToolCall("Write", {"file_path": "a.txt", "content": "x"})
LS = ToolCall("Bash", {"command": "ls"})
FETCH = ToolCall("mcp__openswarm__fetch", {"url": "https://docs.example/"})
SPAWN = ToolCall("Agent", {"subagent_type": "Explore"})
LIST_TASKS = ToolCall("mcp__openswarm__list_tasks", {})
REMEMBER = ToolCall("mcp__openswarm__memory_save", {"text": "x"})
MYSTERY = ToolCall("Mystery", {})
QUESTION = ToolCall("AskUserQuestion", {"questions": []})
PLAN_DONE = ToolCall("ExitPlanMode", {"plan": "x"})

BY_CLASS = {
    ToolClass.READ: READ,
    ToolClass.NETWORK: FETCH,
    ToolClass.WRITE: WRITE,
    ToolClass.EXECUTE: LS,
    ToolClass.SPAWN: SPAWN,
    ToolClass.INTERNAL: LIST_TASKS,
    ToolClass.INTERNAL_WRITE: REMEMBER,
    ToolClass.UNKNOWN: MYSTERY,
}
MATRIX = {
    SecurityMode.DENY: "deny deny deny deny deny deny deny deny",
    SecurityMode.SANDBOX: "allow deny deny deny deny allow deny deny",
    SecurityMode.ALLOWLIST: "deny deny deny deny deny deny deny deny",
    SecurityMode.ASK: "allow ask ask ask ask allow ask deny",
    SecurityMode.FULL: "allow allow allow allow allow allow allow deny",
}
CELLS = [
    (mode, tool_class, effect)
    for mode, row in MATRIX.items()
    for tool_class, effect in zip(BY_CLASS, row.split(), strict=True)
]


@pytest.mark.parametrize(("mode", "tool_class", "effect"), CELLS)
def test_the_matrix_of_modes_and_classes(mode, tool_class, effect):
    verdict = decide(BY_CLASS[tool_class], context(mode))

    assert verdict.effect == effect
    assert verdict.trace[-1].guard == "mode"
    assert verdict.reason.endswith(".")


@pytest.mark.parametrize("tool_class", list(BY_CLASS))
def test_the_allow_list_allows_exactly_what_a_rule_names(tool_class):
    call = BY_CLASS[tool_class]
    rule = Rule(call.tool_name, Effect.ALLOW, rule_id="r1")
    other = Rule("Edit", Effect.ALLOW)
    known = tool_class is not ToolClass.UNKNOWN

    named = decide(call, context(SecurityMode.ALLOWLIST, rules=(rule,)))

    assert named.effect is (Effect.ALLOW if known else Effect.DENY)
    assert named.rule_id == ("r1" if known else None)
    not_named = decide(call, context(SecurityMode.ALLOWLIST, rules=(other,)))
    assert not_named.effect is Effect.DENY


def test_always_allow_counts_as_being_on_the_allow_list():
    policies = {"Write": ToolPolicy.ALWAYS_ALLOW, "Read": ToolPolicy.ASK}
    listed = context(SecurityMode.ALLOWLIST, tool_policies=policies)

    assert decide(WRITE, listed).effect is Effect.ALLOW
    assert decide(READ, listed).effect is Effect.DENY


def test_network_reads_in_a_sandbox_are_a_setting():
    sandbox = context(SecurityMode.SANDBOX, sandbox_network_reads=True)
    github = ToolCall("mcp__github__search", {})

    assert decide(FETCH, sandbox).effect is Effect.ALLOW
    assert decide(github, sandbox).effect is Effect.ALLOW
    assert decide(WRITE, sandbox).effect is Effect.DENY


def test_rules_do_not_open_a_sandbox():
    sandbox = context(SecurityMode.SANDBOX, rules=(Rule("*", Effect.ALLOW),))

    assert decide(WRITE, sandbox).effect is Effect.DENY


def test_asking_for_everything_includes_reads_but_respects_rules():
    asking = context(ask_for_everything=True)
    ruled = replace(asking, rules=(Rule("Read", Effect.ALLOW),))

    assert decide(READ, asking).effect is Effect.ASK
    assert decide(LIST_TASKS, asking).effect is Effect.ASK
    assert decide(READ, ruled).effect is Effect.ALLOW


def test_the_reason_tells_what_needs_approval():
    assert decide(WRITE, context()).reason == "Writing files needs approval."
    assert decide(LS, context()).reason == "Running a command needs approval."
    assert decide(ToolCall("mcp__github__create", {}), context()).reason == (
        "Using mcp__github__create needs approval."
    )


@pytest.mark.parametrize("mode", list(SecurityMode))
def test_deny_beats_ask_beats_allow_in_every_scope(mode):
    allow = Rule("*", Effect.ALLOW, rule_id="allow")
    ask = Rule("Read", Effect.ASK, rule_id="ask")
    deny = Rule("Read", Effect.DENY, rule_id="deny")

    all_three = decide(READ, context(mode, rules=(allow, ask, deny)))
    without_deny = decide(READ, context(mode, rules=(allow, ask)))

    assert all_three.effect is Effect.DENY
    expected = Effect.DENY if mode is SecurityMode.DENY else Effect.ASK
    assert without_deny.effect is expected
    if mode is not SecurityMode.DENY:
        assert (all_three.rule_id, without_deny.rule_id) == ("deny", "ask")
        assert all_three.reason == "The rule Read (session) denies this."


def test_policies_of_single_tools_bind_when_no_rule_speaks():
    policies = {
        "Write": ToolPolicy.ALWAYS_ALLOW,
        "Read": ToolPolicy.ASK,
        "Bash": ToolPolicy.DENY,
    }
    asking = context(tool_policies=policies)

    assert decide(WRITE, asking).effect is Effect.ALLOW
    assert decide(READ, asking).effect is Effect.ASK
    assert decide(LS, asking).effect is Effect.DENY
    ruled = replace(
        asking, rules=(Rule("Bash", Effect.ALLOW), Rule("Read", Effect.ALLOW))
    )
    assert decide(READ, ruled).effect is Effect.ALLOW
    assert decide(LS, ruled).effect is Effect.DENY
    full = replace(asking, security_mode=SecurityMode.FULL)
    assert decide(READ, full).effect is Effect.ALLOW
    assert decide(LS, full).effect is Effect.DENY


def test_a_command_that_cannot_be_read_asks_even_where_all_is_allowed():
    broken = ToolCall("Bash", {"command": "ls 'x"})
    allowed = context(rules=(Rule("Bash", Effect.ALLOW),))

    assert decide(broken, allowed).effect is Effect.ASK
    assert decide(broken, context(SecurityMode.FULL)).effect is Effect.ASK


def test_an_unclear_command_asks_where_a_rule_denies_some():
    rules = (Rule("Bash", Effect.DENY, matcher="rm:*", rule_id="r1"),)
    verdict = decide(
        ToolCall("Bash", {"command": "$tool x"}),
        context(SecurityMode.FULL, rules=rules),
    )

    assert verdict.effect is Effect.ASK
    assert verdict.rule_id == "r1"


@pytest.mark.parametrize("mode", list(SecurityMode))
@pytest.mark.parametrize(
    "call",
    [
        ToolCall("Bash", {"command": "rm -rf /"}),
        ToolCall("Read", {"file_path": "~/.ssh/id_rsa"}),
        ToolCall("Write", {"file_path": "/etc/hosts", "content": ""}),
        ToolCall("Read", {"file_path": "../2/work/a.txt"}),
        ToolCall("Read", {}),
    ],
)
def test_bounds_and_folders_hold_in_every_mode(mode, call):
    rules = (Rule("*", Effect.ALLOW),)

    assert decide(call, context(mode, rules=rules)).effect is Effect.DENY


def test_a_tool_that_the_session_lacks_is_denied_with_its_reason():
    few = context(SecurityMode.FULL, offered_tools=frozenset({"Read"}))

    assert decide(WRITE, few).reason == "This session may not use Write."
    assert decide(ToolCall("WebFetch", {}), few).reason == (
        "WebFetch is not offered. The agent's jail has no network. Use fetch instead."
    )
    assert decide(ToolCall("Workflow", {}), few).reason.startswith(
        "Workflow is not offered."
    )
    assert decide(ToolCall("mcp__github__create", {}), few).effect is Effect.DENY
    assert decide(MYSTERY, few).reason == "Mystery is not a tool known here."


def test_a_path_outside_suggests_the_folder_only_if_that_would_help():
    outside = decide(ToolCall("Read", {"file_path": "/opt/lib/x"}), context())
    secret = decide(ToolCall("Read", {"file_path": "/root/.ssh/id_rsa"}), context())

    assert outside.add_folder == Path("/opt/lib")
    assert outside.reason == "This path is outside the session's folders: /opt/lib/x"
    assert secret.effect is Effect.DENY
    assert secret.add_folder is None


def test_without_a_jail_commands_ask_unless_the_owner_allowed_them():
    full = context(SecurityMode.FULL, jailed=False)
    allowed = replace(full, allow_unjailed_execution=True)
    ruled = replace(full, rules=(Rule("Bash", Effect.ALLOW),))

    assert decide(LS, full).effect is Effect.ASK
    assert decide(LS, ruled).effect is Effect.ASK
    assert decide(LS, allowed).effect is Effect.ALLOW
    assert decide(WRITE, full).effect is Effect.ALLOW


@pytest.mark.parametrize("mode", list(SecurityMode))
@pytest.mark.parametrize("call", [QUESTION, PLAN_DONE])
def test_questions_and_plans_always_go_to_the_person(mode, call):
    rules = (Rule("*", Effect.ALLOW),)
    policies = {call.tool_name: ToolPolicy.ALWAYS_ALLOW}

    verdict = decide(call, context(mode, rules=rules, tool_policies=policies))

    expected = Effect.DENY if mode is SecurityMode.DENY else Effect.ASK
    assert verdict.effect is expected


def test_planning_may_start_without_asking():
    assert decide(ToolCall("EnterPlanMode", {}), context()).effect is Effect.ALLOW


@pytest.mark.parametrize("mode", list(SecurityMode))
def test_a_planning_session_writes_its_plan_and_nothing_else(mode):
    def planned(tool: str, **tool_input: str) -> Effect:
        call = ToolCall(tool, tool_input, permission_mode="plan")
        return decide(call, context(mode, rules=(Rule("*", Effect.ALLOW),))).effect

    plan = str(HERE / "home/plans/quiet-fox.md")
    allowed = Effect.DENY if mode is SecurityMode.DENY else Effect.ALLOW
    assert planned("Write", file_path=plan, content="x") is allowed
    assert planned("Read", file_path="a.txt") is allowed
    assert planned("Write", file_path="a.txt", content="x") is Effect.DENY
    assert planned("Write", file_path=f"{plan}/x.md", content="x") is Effect.DENY
    assert planned("Bash", command="ls") is Effect.DENY
    assert planned("mcp__github__create") is Effect.DENY


def test_the_plan_is_out_of_reach_when_nobody_plans():
    call = ToolCall("Write", {"file_path": str(HERE / "home/plans/x.md")})

    assert decide(call, context(SecurityMode.FULL)).effect is Effect.DENY


def test_a_ceiling_caps_the_mode():
    capped = context(SecurityMode.FULL, ceiling=SecurityMode.ASK)
    lower = context(SecurityMode.SANDBOX, ceiling=SecurityMode.ASK)

    verdict = decide(WRITE, capped)

    assert verdict.effect is Effect.ASK
    assert verdict.reason == (
        "Your limit is the mode “ask”. Writing files needs approval."
    )
    assert decide(READ, capped).effect is Effect.ALLOW
    assert decide(WRITE, lower).effect is Effect.DENY
    assert [step.guard for step in decide(READ, lower).trace] == ["mode"]


@pytest.mark.parametrize("mode", list(SecurityMode))
@pytest.mark.parametrize("ceiling", list(SecurityMode))
def test_the_mode_in_force_is_the_lower_one(mode, ceiling):
    assert mode.capped_by(ceiling).rank == min(mode.rank, ceiling.rank)


def test_the_trace_names_every_guard_that_objects():
    call = ToolCall("Write", {"file_path": "/etc/shadow"}, permission_mode="plan")
    crowded = context(
        SecurityMode.SANDBOX,
        offered_tools=frozenset(),
        rules=(Rule("Write", Effect.DENY), Rule("Write", Effect.ASK)),
        tool_policies={"Write": ToolPolicy.DENY},
        ceiling=SecurityMode.DENY,
    )

    verdict = decide(call, crowded)

    assert [step.guard for step in verdict.trace] == [
        *("tool", "bounds", "paths", "plan", "rules", "rules", "tool policy"),
        *("ceiling", "mode"),
    ]
    assert verdict.reason == verdict.trace[0].reason


@pytest.mark.parametrize("value", [None, 0, [], {"a": 1}, "\ud800", "a\0b"])
@pytest.mark.parametrize("tool", sorted(EVERY_TOOL))
def test_odd_inputs_get_a_verdict_and_no_exception(tool, value):
    fields = ("file_path", "notebook_path", "path", "pattern", "command", "url")
    call = ToolCall(tool, dict.fromkeys(fields, value))
    rules = (Rule("*", Effect.ALLOW, matcher="x"), Rule("*", Effect.DENY, matcher="y"))

    assert decide(call, context(rules=rules)).effect in Effect


# The same examples in every run: the gate must not depend on luck or on speed.
steady = settings(deadline=None, derandomize=True, database=None, max_examples=200)

PIECES = (
    *("ls", "rm", "$x", "'a b'", ">", "|", "&&", ";", "$(rm)", "`id`", "sudo"),
    *("timeout", "5", "{", "}", "(", ")", "\n", "\\", "-rf", "/", "~", "é", "'"),
)
commands = st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join)
paths = st.sampled_from(
    ["a.txt", "../x", "/etc/hosts", "~/.ssh/x", "src/b", "~/plans/p.md", "\0"]
)
calls = st.one_of(
    st.builds(lambda text: ToolCall("Bash", {"command": text}), commands),
    st.builds(
        lambda tool, path, mode: ToolCall(tool, {"file_path": path}, None, mode),
        st.sampled_from(["Read", "Write", "Edit", "NotebookEdit", "Glob"]),
        paths,
        st.sampled_from(["default", "plan"]),
    ),
    st.sampled_from([*BY_CLASS.values(), QUESTION, PLAN_DONE]),
)
rules = st.builds(
    Rule,
    st.sampled_from(["Bash", "Read", "Write", "*", "Agent", "mcp__*", "Mystery"]),
    st.sampled_from(list(Effect)),
    matcher=st.sampled_from(["", "ls:*", "rm:*", "**", "src/**", "ls", "Explore"]),
)
modes = st.sampled_from(list(SecurityMode))
contexts = st.builds(
    context,
    modes,
    ceiling=modes,
    jailed=st.booleans(),
    allow_unjailed_execution=st.booleans(),
    ask_for_everything=st.booleans(),
    sandbox_network_reads=st.booleans(),
    rules=st.lists(rules, max_size=4).map(tuple),
    tool_policies=st.dictionaries(
        st.sampled_from(sorted(EVERY_TOOL)), st.sampled_from(list(ToolPolicy))
    ),
)


def loosened(call: ToolCall, before: PolicyContext, after: PolicyContext) -> bool:
    return (
        decide(call, after).effect.strictness < decide(call, before).effect.strictness
    )


@steady
@given(calls, contexts, rules)
def test_adding_a_deny_or_ask_rule_never_loosens_a_verdict(call, before, rule):
    for effect in (Effect.ASK, Effect.DENY):
        after = replace(before, rules=(*before.rules, replace(rule, effect=effect)))

        assert not loosened(call, before, after)


@steady
@given(calls, contexts, st.sampled_from(sorted(EVERY_TOOL)))
def test_adding_a_guard_never_loosens_a_verdict(call, before, tool):
    tighter = [
        replace(before, offered_tools=before.offered_tools - {tool}),
        replace(before, jailed=False),
        replace(before, allow_unjailed_execution=False),
        replace(before, ask_for_everything=True),
        replace(before, sandbox_network_reads=False),
        replace(before, protected_paths=(HERE / "work/src",)),
        replace(before, roots=()),
        replace(before, tool_policies={**before.tool_policies, tool: ToolPolicy.DENY}),
    ]

    assert not any(loosened(call, before, after) for after in tighter)


@steady
@given(calls, contexts, modes)
def test_a_ceiling_never_loosens_a_verdict(call, some_context, ceiling):
    free = replace(some_context, ceiling=SecurityMode.FULL)

    assert not loosened(call, free, replace(free, ceiling=ceiling))


@steady
@given(calls, contexts)
def test_the_verdict_is_the_strictest_step_of_its_trace(call, some_context):
    verdict = decide(call, some_context)

    strictest = max(step.effect.strictness for step in verdict.trace)
    assert verdict.effect.strictness == strictest
    assert any(step.reason == verdict.reason for step in verdict.trace)


@pytest.mark.parametrize("mode", list(SecurityMode))
def test_every_guard_that_speaks_is_named(mode):
    strict = context(
        mode,
        ceiling=SecurityMode.DENY,
        jailed=False,
        offered_tools=frozenset(),
        rules=(Rule("*", Effect.DENY),),
        tool_policies={"Bash": ToolPolicy.DENY, "Write": ToolPolicy.DENY},
    )
    calls = [
        ToolCall("Write", {"file_path": "/etc/passwd"}, permission_mode="plan"),
        ToolCall("Bash", {"command": "rm -rf /"}, permission_mode="plan"),
    ]

    spoke = [step.guard for call in calls for step in decide(call, strict).trace]

    assert set(spoke) <= set(GUARD_NAMES)
    if mode is not SecurityMode.DENY:
        assert set(spoke) == set(GUARD_NAMES)
