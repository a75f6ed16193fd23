"""What is in force now answers what already waits.

Who says "always allow" to one of ten calls that ask the same means the other nine too,
and a security mode that was changed binds the calls that wait as well. Each request is
judged again by the whole policy, so that a guard or a rule that asks stays stronger
than whatever was changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from agents.errors import SessionGoneError
from agents.models import AgentSession, ApprovalRequest, PermissionRule, User
from agents.models.approvals import (
    ApprovalKind,
    ApprovalRequestQuerySet,
    ApprovalScope,
    ApprovalStatus,
)
from agents.models.rules import RuleScope
from agents.policy.decision import ToolCall, TraceStep, Verdict, decide
from agents.policy.modes import Effect

from . import audit, budgets, permissions, runs, settling
from .locks import lock_session
from .status import refresh_status

RULE_CHANNEL = "rule"
POLICY_CHANNEL = "policy"
# What these say doesn't depend on where the process that asks has its folders, or on
# whether it is planning; the gate, which knows, judges again before the call runs.
_CERTAIN = frozenset({"tool", "rules", "tool policy", "ceiling", "mode"})


def settle_by_rule(rule: PermissionRule) -> int:
    """Answer whatever waits within the scope of a rule that was just made.

    Returns: how many requests it ended.
    """
    waiting = ApprovalRequest.objects.pending()
    if rule.scope == RuleScope.SESSION:
        waiting = waiting.filter(session=rule.session_id)
    elif rule.scope != RuleScope.SITE:
        waiting = waiting.filter(session__owner=rule.owner_id)
    return _settle_all(waiting, None)


def settle_in_session(session: AgentSession, actor: User) -> int:
    """Answer what waits in a session whose mode or security mode was changed."""
    return _settle_all(ApprovalRequest.objects.filter(session=session).pending(), actor)


def settle_of_person(person: User, actor: User) -> int:
    """Answer what waits in the sessions of a person whose limit was changed."""
    of_person = ApprovalRequest.objects.filter(session__owner=person)
    return _settle_all(of_person.pending(), actor)


def settle_tools(names: Iterable[str], owner: User | None, actor: User) -> int:
    """Answer what waits to use one of these tools, which are treated differently now.

    Args:
        owner: whose agents have them; None: everybody's.
    """
    waiting = ApprovalRequest.objects.filter(tool_name__in=list(names)).pending()
    if owner is not None:
        waiting = waiting.filter(session__owner=owner)
    return _settle_all(waiting, actor)


def _settle_all(waiting: ApprovalRequestQuerySet, actor: User | None) -> int:
    """Each session in a transaction of its own: only one is ever locked at a time."""
    calls = waiting.about_calls()
    in_order = calls.order_by("session_id", "created_at", "pk")
    return sum(settle_by_policy(approval, actor) for approval in list(in_order))


def settle_by_policy(approval: ApprovalRequest, actor: User | None = None) -> bool:
    """End the request if policy allows or forbids its call by now.

    Also for calls that asked while something was being changed: each side looks for
    the other after its own commit.

    Args:
        actor: who changed what is in force, where it was not a rule.

    Returns: False if it goes on waiting, or is over.
    """
    try:
        return _settle(approval, actor)
    except SessionGoneError:
        return False


@transaction.atomic
def _settle(approval: ApprovalRequest, actor: User | None) -> bool:
    session = lock_session(approval.session_id)
    step = _deciding_step(approval, _judge(approval))
    if step is None:
        return False
    rule = _rule_of(step)
    won = settling.settle(
        approval,
        channel=RULE_CHANNEL if rule else POLICY_CHANNEL,
        decided_by=rule.owner if rule else actor,
        **_outcome(step, rule),
    )
    if won:
        _follow_up(session, approval, rule)
    return won


def _deciding_step(approval: ApprovalRequest, verdict: Verdict) -> TraceStep | None:
    """What ends the request; None: it goes on waiting."""
    if verdict.effect == Effect.ALLOW and approval.kind == ApprovalKind.APPROVAL:
        return verdict.trace[-1]
    denials = (step for step in verdict.trace if step.effect == Effect.DENY)
    return next((step for step in denials if step.guard in _CERTAIN), None)


def _outcome(step: TraceStep, rule: PermissionRule | None) -> dict[str, Any]:
    facts = {"rule_id": str(rule.pk)} if rule else {}
    if step.effect == Effect.DENY:
        return {**facts, "status": ApprovalStatus.DENIED, "message": step.reason}
    if rule is not None:
        is_own = rule.scope == RuleScope.SESSION
        facts["scope"] = ApprovalScope.SESSION if is_own else ApprovalScope.ALWAYS
    return {**facts, "status": ApprovalStatus.APPROVED}


def _follow_up(
    session: AgentSession, approval: ApprovalRequest, rule: PermissionRule | None
) -> None:
    if rule is not None:
        permissions.count_hit(str(rule.pk))
    audit.record(
        "approval.decided",
        actor=approval.decided_by,
        target=approval,
        status=approval.status,
        tool=approval.tool_name,
        **({"rule": str(rule)} if rule else {"by": POLICY_CHANNEL}),
    )
    refresh_status(session.pk)
    runs.resume_if_decided(approval.run_id)


def release_within_budgets() -> int:
    """Let go on what waits for a budget that has room again.

    Returns: how many were released.
    """
    waiting = ApprovalRequest.objects.pending().filter(kind=ApprovalKind.BUDGET)
    return sum(_release_within_budget(approval) for approval in waiting)


def _release_within_budget(approval: ApprovalRequest) -> bool:
    if budgets.find_used_up(approval.session_id) is not None:
        return False
    try:
        with transaction.atomic():
            lock_session(approval.session_id)
            won = settling.settle(approval, ApprovalStatus.APPROVED)
            if won:
                refresh_status(approval.session_id)
                runs.resume_if_decided(approval.run_id)
    except SessionGoneError:
        return False
    return won


def _judge(approval: ApprovalRequest) -> Verdict:
    """The verdict of this moment, as far as it is known without the process."""
    call = ToolCall(
        approval.tool_name, approval.tool_input, agent_id=approval.agent_id or None
    )
    around = permissions.surroundings_of(
        approval.session_id, jailed=bool(approval.run.jailed)
    )
    return decide(call, permissions.policy_context(approval.session_id, around))


def _rule_of(step: TraceStep) -> PermissionRule | None:
    if not step.rule_id:
        return None
    rules = PermissionRule.objects.filter(pk=step.rule_id)
    return rules.select_related("owner").first()
