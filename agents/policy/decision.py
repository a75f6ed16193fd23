"""May this tool call run? The one function that knows all the rules.

Every guard is asked, then the mode; the strictest answer wins. A guard can only
tighten, so adding one never lets anything through. The steps make up the trace that
cards and the explainer show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, assert_never

from .bounds import find_bound
from .calls import ToolCall, is_path_tool
from .modes import Effect, SecurityMode
from .paths import Place, Territory, find_outside, writes_plan
from .rules import Rule, RuleScope, find_allowing, find_tightening, unsure_about
from .tools import (
    PERSON_TOOLS,
    ToolClass,
    ToolPolicy,
    classify_tool,
    find_tool,
    get_effective_policy,
)

__all__ = [
    "GUARD_NAMES",
    "Effect",
    "PolicyContext",
    "Rule",
    "RuleScope",
    "SecurityMode",
    "ToolCall",
    "ToolClass",
    "ToolPolicy",
    "TraceStep",
    "Verdict",
    "decide",
]


# In the order in which they are asked; the mode comes last.
GUARD_NAMES: Final = (
    *("tool", "bounds", "paths", "plan", "rules", "tool policy", "jail", "ceiling"),
    "mode",
)


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """Everything about a session that its calls are judged by."""

    security_mode: SecurityMode
    ceiling: SecurityMode
    offered_tools: frozenset[str]
    cwd: Path
    roots: tuple[Path, ...]  # read and write; the working directory is one of them
    readable_paths: tuple[Path, ...] = ()  # tool results, images, task outputs
    plan_dir: Path | None = None  # where a planning session may write its plan
    plan_slug: str = ""
    home: Path | None = None  # what `~` means to the agent
    plans_first: bool = False  # its mode only plans, whatever the CLI says
    jailed: bool = True
    allow_unjailed_execution: bool = False
    ask_for_everything: bool = False
    sandbox_network_reads: bool = False
    rules: tuple[Rule, ...] = ()
    tool_policies: Mapping[str, ToolPolicy] = field(default_factory=dict)
    tool_classes: Mapping[str, ToolClass] = field(default_factory=dict)  # MCP tools
    protected_paths: tuple[Path, ...] = ()  # the site's own files

    @property
    def territory(self) -> Territory:
        return Territory(
            place=Place(self.cwd, self.home),
            roots=self.roots,
            readable=self.readable_paths,
            protected=self.protected_paths,
            plan_dir=self.plan_dir,
            plan_slug=self.plan_slug,
        )


@dataclass(frozen=True, slots=True)
class TraceStep:
    """What one guard, or the mode, said."""

    guard: str
    effect: Effect
    reason: str
    rule_id: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    effect: Effect
    reason: str
    trace: tuple[TraceStep, ...]
    rule_id: str | None = None  # the rule that settled it
    add_folder: Path | None = None  # what a person could add to make the path reachable


@dataclass(slots=True)
class _Case:
    call: ToolCall
    context: PolicyContext
    tool_class: ToolClass
    territory: Territory
    add_folder: Path | None = None


def decide(call: ToolCall, context: PolicyContext) -> Verdict:
    """Judge one tool call; the same call in the same context gets the same verdict."""
    tool_class = classify_tool(call.tool_name, context.tool_classes)
    case = _Case(call, context, tool_class, context.territory)
    steps = tuple(step for guard in (*_GUARDS, _judge_by_mode) for step in guard(case))
    # The mode comes last and always speaks: it explains what no guard objected to.
    settled = max(reversed(steps), key=lambda step: step.effect.strictness)
    if settled.effect is not Effect.ALLOW:
        settled = next(step for step in steps if step.effect is settled.effect)
    # Adding a folder helps only where nothing but the folder is at fault.
    add_folder = case.add_folder if settled.guard == "paths" else None
    return Verdict(settled.effect, settled.reason, steps, settled.rule_id, add_folder)


# Guards: each yields a step when it objects.


def _guard_tool(case: _Case) -> Iterator[TraceStep]:
    name = case.call.tool_name
    if case.tool_class is ToolClass.UNKNOWN:
        yield TraceStep("tool", Effect.DENY, f"{name} is not a tool known here.")
    elif name not in case.context.offered_tools:
        yield TraceStep("tool", Effect.DENY, _explain_missing(name))


def _explain_missing(name: str) -> str:
    spec = find_tool(name)
    if spec is None or spec.why_not is None:
        return f"This session may not use {name}."
    instead = f" Use {spec.replacement} instead." if spec.replacement else ""
    return f"{name} is not offered. {spec.why_not}{instead}"


def _guard_bounds(case: _Case) -> Iterator[TraceStep]:
    found = find_bound(case.call, case.tool_class, case.territory)
    if found is not None:
        yield TraceStep("bounds", found.effect, found.reason)


def _guard_paths(case: _Case) -> Iterator[TraceStep]:
    call = case.call
    if not is_path_tool(call.tool_name) or writes_plan(call, case.territory):
        return
    writes = case.tool_class is not ToolClass.READ
    found = find_outside(call, case.territory, writes=writes)
    if found is not None:
        case.add_folder = found.add_folder
        yield TraceStep("paths", Effect.DENY, found.reason)


def _guard_plan_mode(case: _Case) -> Iterator[TraceStep]:
    is_planning = case.call.permission_mode == "plan" or case.context.plans_first
    if not is_planning or writes_plan(case.call, case.territory):
        return
    if case.tool_class in (ToolClass.WRITE, ToolClass.EXECUTE):
        reason = "The session is planning: nothing is changed or run before the plan is"
        yield TraceStep("plan", Effect.DENY, f"{reason} approved.")


def _guard_rules(case: _Case) -> Iterator[TraceStep]:
    call, rules, place = case.call, case.context.rules, case.territory.place
    for effect in (Effect.DENY, Effect.ASK):
        rule = find_tightening(rules, call, place, effect)
        if rule is not None:
            verb = "denies" if effect is Effect.DENY else "asks about"
            reason = f"The rule {rule} ({rule.scope}) {verb} this."
            yield TraceStep("rules", effect, reason, rule.rule_id)
    unsure = unsure_about(rules, call)
    if unsure is not None:
        reason = f"It can't be told whether the rule {unsure} speaks about this."
        yield TraceStep("rules", Effect.ASK, reason, unsure.rule_id)


def _guard_tool_policy(case: _Case) -> Iterator[TraceStep]:
    name = case.call.tool_name
    policy = get_effective_policy(name, case.context.tool_policies)
    if policy is ToolPolicy.DENY:
        yield TraceStep("tool policy", Effect.DENY, f"{name} is set to “deny”.")


def _guard_jail(case: _Case) -> Iterator[TraceStep]:
    context = case.context
    if context.jailed or context.allow_unjailed_execution:
        return
    if case.tool_class is ToolClass.EXECUTE:
        reason = "This machine has no jail, so commands run with the server's rights."
        yield TraceStep("jail", Effect.ASK, reason)


def _guard_ceiling(case: _Case) -> Iterator[TraceStep]:
    """The ceiling judges as well when the mode lies above it, so it only tightens."""
    context = case.context
    if context.security_mode.rank > context.ceiling.rank:
        step = _judge(case, context.ceiling)
        reason = f"Your limit is the mode “{context.ceiling}”. {step.reason}"
        yield TraceStep("ceiling", step.effect, reason, step.rule_id)


_GUARDS: Final[tuple[Callable[[_Case], Iterator[TraceStep]], ...]] = (
    _guard_tool,
    _guard_bounds,
    _guard_paths,
    _guard_plan_mode,
    _guard_rules,
    _guard_tool_policy,
    _guard_jail,
    _guard_ceiling,
)


def _judge_by_mode(case: _Case) -> Iterator[TraceStep]:
    yield _judge(case, case.context.security_mode)


def _judge(case: _Case, mode: SecurityMode) -> TraceStep:
    """What a mode says to a call that no guard objects to."""
    if mode is SecurityMode.DENY:
        return _step(Effect.DENY, "This session denies every tool.")
    if case.tool_class is ToolClass.UNKNOWN:
        return _step(Effect.DENY, "Unknown tools are denied in every mode.")
    if case.call.tool_name in PERSON_TOOLS:
        return _step(Effect.ASK, _PERSON_REASONS[case.call.tool_name])
    if writes_plan(case.call, case.territory):
        return _step(Effect.ALLOW, "A planning session may write its plan.")
    match mode:
        case SecurityMode.SANDBOX:
            return _judge_in_sandbox(case)
        case SecurityMode.ALLOWLIST:
            return _judge_by_allowlist(case)
        case SecurityMode.ASK:
            return _judge_by_asking(case)
        case SecurityMode.FULL:
            return _step(Effect.ALLOW, "This session runs everything without asking.")
        case _:
            assert_never(mode)


def _step(effect: Effect, reason: str, rule: Rule | None = None) -> TraceStep:
    return TraceStep("mode", effect, reason, rule.rule_id if rule else None)


def _judge_in_sandbox(case: _Case) -> TraceStep:
    readable = {ToolClass.READ, ToolClass.INTERNAL}
    if case.context.sandbox_network_reads:
        readable.add(ToolClass.NETWORK)
    if case.tool_class in readable:
        return _step(Effect.ALLOW, "Reading is allowed in a sandbox session.")
    return _step(Effect.DENY, f"A sandbox session only reads. {_does(case)} is denied.")


def _judge_by_allowlist(case: _Case) -> TraceStep:
    return _find_permission(case) or _step(
        Effect.DENY, "No rule of this session's allow-list names this call."
    )


def _judge_by_asking(case: _Case) -> TraceStep:
    permission = _find_permission(case)
    if permission is not None:
        return permission
    policy = get_effective_policy(case.call.tool_name, case.context.tool_policies)
    quiet = case.tool_class in (ToolClass.READ, ToolClass.INTERNAL)
    if case.context.ask_for_everything or policy is ToolPolicy.ASK or not quiet:
        return _step(Effect.ASK, f"{_does(case)} needs approval.")
    return _step(Effect.ALLOW, "Reading inside the session's folders is allowed.")


def _find_permission(case: _Case) -> TraceStep | None:
    """A rule or a tool's policy that allows the call."""
    call, context = case.call, case.context
    rule = find_allowing(context.rules, call, case.territory.place)
    if rule is not None:
        return _step(Effect.ALLOW, f"The rule {rule} ({rule.scope}) allows this.", rule)
    policy = get_effective_policy(call.tool_name, context.tool_policies)
    if policy is ToolPolicy.ALWAYS_ALLOW:
        return _step(Effect.ALLOW, f"{call.tool_name} is set to “always allow”.")
    return None


def _does(case: _Case) -> str:
    name = case.call.tool_name
    return f"Using {name}" if find_tool(name) is None else _DOINGS[case.tool_class]


_PERSON_REASONS: Final[Mapping[str, str]] = {
    "AskUserQuestion": "The agent asks a question.",
    "ExitPlanMode": "The agent shows its plan and asks to go ahead.",
}
_DOINGS: Final[Mapping[ToolClass, str]] = {
    ToolClass.READ: "Reading files",
    ToolClass.NETWORK: "Reading from outside",
    ToolClass.WRITE: "Writing files",
    ToolClass.EXECUTE: "Running a command",
    ToolClass.SPAWN: "Starting another agent",
    ToolClass.INTERNAL: "Using the session's own tools",
    ToolClass.INTERNAL_WRITE: "Changing tasks or memories",
    ToolClass.UNKNOWN: "An unknown tool",
}
