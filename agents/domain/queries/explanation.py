"""Why a call may run or not: the verdict of this moment, guard by guard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agents.domain.permissions import policy_context, surroundings_of
from agents.models import AgentSession, ApprovalRequest, Message, PermissionRule, User
from agents.models.messages import MessageRole
from agents.policy.decision import GUARD_NAMES, ToolCall, TraceStep, Verdict, decide
from agents.policy.modes import Effect
from agents.rendering.tool_calls import ToolView, tool_view

_LABELS = {
    "tool": "Tool",
    "bounds": "Hard bounds",
    "paths": "Folders",
    "plan": "Planning",
    "rules": "Rules that ask or deny",
    "tool policy": "Setting of the tool",
    "jail": "Jail",
    "ceiling": "Limit of the person",
    "mode": "Security mode",
}
_NO_RUN = (
    "Nothing has run in this session yet, so it isn’t known whether its process would"
    " be in a jail. It is judged as if it were not."
)
_NO_JAIL = "The session’s last process ran without a jail."
_PLACES = (
    "The agent’s own temporary files, tool results and plans may be elsewhere while its"
    " process runs; there it may read what is refused here."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one guard said; without an effect it had nothing against the call."""

    label: str
    effect: Effect | None = None
    reason: str = ""
    rule: PermissionRule | None = None
    """The rule that spoke, if the person may see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    session: AgentSession
    call: ToolCall
    verdict: Verdict
    steps: tuple[Step, ...]
    notes: tuple[str, ...]

    @property
    def view(self) -> ToolView:
        return tool_view(self.call.tool_name, dict(self.call.tool_input), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """A call of the past, to be explained."""

    session: AgentSession
    tool_name: str
    tool_input: dict[str, Any]


def pick_message(user: User, message_id: Any) -> Picked | None:
    """A tool call that the person may see."""
    calls = Message.objects.visible_to(user).filter(role=MessageRole.TOOL_CALL)
    call = calls.select_related("session").filter(pk=message_id).first()
    if call is None:
        return None
    content = call.content if isinstance(call.content, dict) else {}
    return Picked(
        session=call.session,
        tool_name=call.tool_name,
        tool_input=content.get("input") or {},
    )


def pick_approval(user: User, approval_id: Any) -> Picked | None:
    """The call of a request that the person may see."""
    requests = ApprovalRequest.objects.visible_to(user).about_calls()
    asked = requests.select_related("session").filter(pk=approval_id).first()
    if asked is None:
        return None
    return Picked(
        session=asked.session, tool_name=asked.tool_name, tool_input=asked.tool_input
    )


def explain_call(session: AgentSession, call: ToolCall, user: User) -> Explanation:
    """Judge the call by what is in force now, as if the agent made it now.

    The caller has checked that `user` may see the session.
    """
    jailed = session.runs.exclude(jailed=None).values_list("jailed", flat=True).last()
    around = surroundings_of(session.pk, jailed=bool(jailed))
    verdict = decide(call, policy_context(session.pk, around))
    return Explanation(
        session=session,
        call=call,
        verdict=verdict,
        steps=tuple(_steps(verdict, user)),
        notes=tuple(_notes(verdict, jailed=jailed)),
    )


def _steps(verdict: Verdict, user: User) -> Iterable[Step]:
    ids = [step.rule_id for step in verdict.trace if step.rule_id]
    rules = PermissionRule.objects.visible_to(user).in_bulk(ids)
    known = {str(pk): rule for pk, rule in rules.items()}
    for guard in GUARD_NAMES:
        said = [step for step in verdict.trace if step.guard == guard]
        yield from (_step(step, known) for step in said)
        if not said:
            yield Step(label=_LABELS[guard])


def _step(step: TraceStep, rules: dict[str, PermissionRule]) -> Step:
    return Step(
        label=_LABELS[step.guard],
        effect=step.effect,
        reason=step.reason,
        rule=rules.get(step.rule_id or ""),
    )


def _notes(verdict: Verdict, *, jailed: bool | None) -> Iterable[str]:
    guards = {step.guard for step in verdict.trace}
    if jailed is None:
        yield _NO_RUN
    elif not jailed and "jail" in guards:
        yield _NO_JAIL
    if "paths" in guards:
        yield _PLACES
