"""Standing rules answer what already waits for them.

Who says "always allow" to one of ten calls that ask the same means the other nine too.
Each request is judged again by the whole policy, so that a guard or a rule that asks
stays stronger than the rule that was made.
"""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from agents.errors import SessionGoneError
from agents.models import ApprovalRequest, PermissionRule
from agents.models.approvals import ApprovalKind, ApprovalScope, ApprovalStatus
from agents.models.rules import RuleScope
from agents.policy.decision import ToolCall, decide
from agents.policy.modes import Effect
from agents.workspaces.folders import session_home, session_tmp

from . import audit, permissions, runs, settling
from .locks import lock_session
from .status import refresh_status

CHANNEL = "rule"
_TMP_IN_JAIL = Path("/tmp")  # noqa: S108  where the jail shows the session's own


def release_waiting(rule: PermissionRule) -> int:
    """Approve whatever waits within the rule's scope and is allowed by now.

    Each session in a transaction of its own: only one is ever locked at a time.

    Returns: how many were approved.
    """
    waiting = ApprovalRequest.objects.pending().filter(kind=ApprovalKind.APPROVAL)
    if rule.scope == RuleScope.SESSION:
        waiting = waiting.filter(session=rule.session_id)
    else:
        waiting = waiting.filter(session__owner=rule.owner_id)
    return sum(release_if_allowed(approval) for approval in waiting)


def release_if_allowed(approval: ApprovalRequest) -> bool:
    """Approve the request if a rule allows its call by now.

    Also for calls that asked while the rule was being made: each side looks for the
    other after its own commit.

    Returns: False if it goes on waiting, or is over.
    """
    try:
        return _release_if_allowed(approval)
    except SessionGoneError:
        return False


@transaction.atomic
def _release_if_allowed(approval: ApprovalRequest) -> bool:
    session = lock_session(approval.session_id)
    rule = _rule_for(approval)
    if rule is None:
        return False
    is_own = rule.scope == RuleScope.SESSION
    won = settling.settle(
        approval,
        ApprovalStatus.APPROVED,
        channel=CHANNEL,
        decided_by=rule.owner,
        rule_id=str(rule.pk),
        scope=ApprovalScope.SESSION if is_own else ApprovalScope.ALWAYS,
    )
    if not won:
        return False
    permissions.count_hit(str(rule.pk))
    audit.record(
        "approval.decided",
        actor=rule.owner,
        target=approval,
        status=approval.status,
        tool=approval.tool_name,
        rule=str(rule),
    )
    refresh_status(session.pk)
    runs.resume_if_decided(approval.run_id)
    return True


def _rule_for(approval: ApprovalRequest) -> PermissionRule | None:
    """The rule by which policy allows the call now, if it does."""
    if approval.kind != ApprovalKind.APPROVAL:
        return None
    call = ToolCall(
        approval.tool_name, approval.tool_input, agent_id=approval.agent_id or None
    )
    context = permissions.policy_context(approval.session_id, _around(approval))
    verdict = decide(call, context)
    if verdict.effect != Effect.ALLOW or not verdict.rule_id:
        return None
    return (
        PermissionRule.objects.filter(pk=verdict.rule_id)
        .select_related("owner")
        .first()
    )


def _around(approval: ApprovalRequest) -> permissions.Surroundings:
    """As far as is known without the process; what is not is not widened."""
    home = session_home(approval.session_id)
    jailed = bool(approval.run.jailed)
    return permissions.Surroundings(
        jailed=jailed,
        home=home,
        tmp=_TMP_IN_JAIL if jailed else session_tmp(approval.session_id),
        config_dir=home / ".claude",
        extra_tools={},
    )
