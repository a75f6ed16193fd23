"""Approvals: opening a request, deciding it once, consuming the decision once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.conf import conf
from agents.errors import AlreadyDecidedError, InvalidInputError, NotAllowedError
from agents.events.bus import publish_on_commit
from agents.events.vocabulary import ApprovalRequested
from agents.models import ApprovalRequest, PermissionRule, Run, User
from agents.models.approvals import ApprovalKind, ApprovalScope, ApprovalStatus
from agents.models.fields import fitting
from agents.models.rules import RuleEffect, RuleScope
from agents.policy.decision import ToolCall
from agents.policy.paths import Place
from agents.policy.rules import Rule, suggest_rule
from agents.rendering.text import clean_json, clean_text

from . import analytics, audit, budgets, releases, runs, schemas, settling
from .locks import lock_run, lock_session
from .status import refresh_status

_KINDS = {
    "AskUserQuestion": ApprovalKind.QUESTION,
    "ExitPlanMode": ApprovalKind.PLAN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's answer. `message` goes to the model word for word."""

    is_approved: bool
    message: str = ""
    updated_input: dict[str, Any] | None = None
    scope: ApprovalScope = ApprovalScope.ONCE
    stops_run: bool = False
    channel: str = "page"


def hash_input(tool_name: str, tool_input: dict[str, Any]) -> str:
    """The identity of a call: the tool and exactly this input."""
    canonical = json.dumps([tool_name, tool_input], sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def is_about(
    approval: ApprovalRequest, tool_name: str, tool_input: dict[str, Any]
) -> bool:
    """Whether the request is about exactly this call; ids come from outside.

    A plan is its text: a CLI that was started again looks for the file elsewhere, and
    may bring none.
    """
    if _is_same_plan(approval, tool_name, tool_input, of=approval.tool_input):
        return True
    return approval.input_sha256 == hash_input(tool_name, tool_input)


def _is_same_plan(
    approval: ApprovalRequest,
    tool_name: str,
    tool_input: dict[str, Any],
    *,
    of: dict[str, Any],
) -> bool:
    if approval.kind != ApprovalKind.PLAN or tool_name != approval.tool_name:
        return False
    plan = of.get("plan")
    return bool(tool_input.get("plan", plan) == plan)


@transaction.atomic
def open_approval(
    run: Run,
    *,
    tool_use_id: str,
    tool_name: str,
    tool_input: dict[str, Any],
    reason: str = "",
    rule_id: str = "",
    agent_id: str = "",
    kind: ApprovalKind | None = None,
    hot_seconds: float | None = None,
    track_analytics: bool = True,
) -> ApprovalRequest:
    """The request of this tool call; asking again finds the first one.

    Ids come from outside, so the caller checks by `is_about` what it was given.

    Raises: LeaseLostError when the run ended or another worker has it.
    """
    lock_run(run)
    now = timezone.now()
    hot = conf().approval_hot_seconds if hot_seconds is None else hot_seconds
    approval, is_new = ApprovalRequest.objects.get_or_create(
        session_id=run.session_id,
        **fitting(ApprovalRequest, tool_use_id=tool_use_id),
        defaults={
            "run": run,
            "kind": kind or _KINDS.get(tool_name, ApprovalKind.APPROVAL),
            "tool_input": clean_json(tool_input),
            "input_sha256": hash_input(tool_name, tool_input),
            **fitting(
                ApprovalRequest,
                agent_id=agent_id,
                tool_name=tool_name,
                reason=reason,
                rule_id=rule_id,
            ),
            "track_analytics": track_analytics,
            "hot_until": now + timedelta(seconds=hot),
            "expires_at": now + timedelta(days=conf().approval_expiry_days),
        },
    )
    if is_new:
        publish_on_commit(
            ApprovalRequested(
                session_id=run.session_id,
                approval_id=approval.pk,
                kind=approval.kind,
                tool_name=approval.tool_name,
                tool_use_id=approval.tool_use_id,
            )
        )
        analytics.approval_requested(approval)
        refresh_status(run.session_id)
    return approval


def decide_approval(
    approval: ApprovalRequest, user: User, decision: Decision
) -> ApprovalRequest:
    """Answer a pending approval; the first answer wins.

    The caller has checked that `user` may operate the session. A rule that it makes
    answers what else waits for the same.

    Raises:
        AlreadyDecidedError: somebody else was first, or it ended; says who.
        InvalidInputError: the edited input is not what the tool takes.
        NotAllowedError: only an owner raises the budget of a person or of the site.
    """
    _check_may_raise(approval, user, decision)
    updated_input = _checked_input(approval, decision)
    rule = _suggested_rule(approval, decision)
    with transaction.atomic():
        lock_session(approval.session_id)
        status = (
            ApprovalStatus.APPROVED if decision.is_approved else ApprovalStatus.DENIED
        )
        won = (
            ApprovalRequest.objects.pending()
            .filter(pk=approval.pk)
            .update(
                status=status,
                decided_by=user,
                decided_at=timezone.now(),
                **fitting(ApprovalRequest, channel=decision.channel),
                message=clean_text(decision.message).strip(),
                updated_input=updated_input,
                scope=decision.scope,
                stops_run=decision.stops_run and not decision.is_approved,
            )
        )
        approval.refresh_from_db()
        if not won:
            raise AlreadyDecidedError(describe_outcome(approval))
        if decision.is_approved and approval.kind == ApprovalKind.BUDGET:
            _raise_budget(approval, user)
        kept = _keep_rule(approval, user, rule) if rule is not None else None
        audit.record(
            "approval.decided",
            actor=user,
            target=approval,
            status=status,
            tool=approval.tool_name,
            is_edited=updated_input is not None,
        )
        analytics.approval_resolved(approval)
        settling.announce(approval, status, decided_by=user.get_username())
        refresh_status(approval.session_id)
        runs.resume_if_decided(approval.run_id)
    if kept is not None:
        releases.settle_by_rule(kept)
    if approval.kind == ApprovalKind.BUDGET:
        releases.release_within_budgets()
    return approval


def _check_may_raise(approval: ApprovalRequest, user: User, decision: Decision) -> None:
    is_raise = approval.kind == ApprovalKind.BUDGET and decision.is_approved
    if is_raise and not approval.may_be_raised_by(user):
        raise NotAllowedError("Only an owner of this site may raise this budget.")


def _raise_budget(approval: ApprovalRequest, user: User) -> None:
    facts = approval.tool_input
    budgets.raise_to(
        UUID(facts["budget_id"]), facts["raises_to_usd_micros"], actor=user
    )


def _checked_input(
    approval: ApprovalRequest, decision: Decision
) -> dict[str, Any] | None:
    if decision.updated_input is None or not decision.is_approved:
        return None
    if approval.kind == ApprovalKind.BUDGET:
        raise InvalidInputError(
            "This request has no input to edit.", field="updated_input"
        )
    updated: dict[str, Any] = clean_json(decision.updated_input)
    if updated == approval.tool_input:
        return None
    if approval.kind != ApprovalKind.QUESTION:
        schemas.check_input(approval, updated)
    return updated


def describe_outcome(approval: ApprovalRequest) -> str:
    """One sentence for whoever came second."""
    verb = ApprovalStatus(approval.status).label.lower()
    if approval.status == ApprovalStatus.PENDING:  # only reached past its expiry
        return "This request has expired."
    if approval.decided_by is None:
        return f"This request was {verb} already."
    return f"{approval.decided_by.get_username()} {verb} this request already."


def _suggested_rule(approval: ApprovalRequest, decision: Decision) -> Rule | None:
    """The rule that "for this session" and "always" stand for.

    Raises: InvalidInputError when no rule could be as narrow as this call.
    """
    if decision.scope == ApprovalScope.ONCE or not decision.is_approved:
        return None
    rule = preview_rule(approval)
    if rule is None:
        raise InvalidInputError(
            "There is no safe standing rule for this call; approve it once instead.",
            field="decision",
        )
    return rule


def preview_rule(approval: ApprovalRequest) -> Rule | None:
    """What "Always allow" would allow from now on.

    None where nothing is safe, and where a rule asks each time, since that stays
    stronger.
    """
    if approval.rule_id or approval.kind == ApprovalKind.BUDGET:
        return None
    call = ToolCall(approval.tool_name, approval.tool_input)
    return suggest_rule(call, Place(Path(approval.session.cwd), None))


def _keep_rule(approval: ApprovalRequest, user: User, rule: Rule) -> PermissionRule:
    """Leave the rule where people can see and revoke it."""
    is_session = approval.scope == ApprovalScope.SESSION
    kept = PermissionRule.objects.create(
        owner=user,
        scope=RuleScope.SESSION if is_session else RuleScope.USER,
        session=approval.session if is_session else None,
        tool=rule.tool,
        matcher=rule.matcher,
        effect=RuleEffect.ALLOW,
        created_from=approval,
    )
    audit.record("rule.created", actor=user, target=kept, rule=str(kept))
    return kept


def consume(approval_id: UUID) -> bool:
    """Use a decision; True for exactly one caller."""
    return bool(
        ApprovalRequest.objects.filter(pk=approval_id, consumed_at=None)
        .exclude(status=ApprovalStatus.PENDING)
        .update(consumed_at=timezone.now())
    )


def find_grant(
    run: Run, tool_name: str, tool_input: dict[str, Any]
) -> ApprovalRequest | None:
    """The grant that `take_grant` would use; it stays unused."""
    grants = _grants(run, tool_name)
    return next((each for each in grants if _fits(each, tool_name, tool_input)), None)


def take_grant(
    run: Run, tool_name: str, tool_input: dict[str, Any]
) -> ApprovalRequest | None:
    """Use the one-time permission that an interrupted call was given, if any.

    It fits exactly one call: the same tool with the input that was asked about, or
    with the input that the person put in its place; and it fits once, in the run
    that asked. What was asked since the run was last claimed belongs to a waiter that
    is alive.
    """
    for approval in _grants(run, tool_name):
        if _fits(approval, tool_name, tool_input) and consume(approval.pk):
            return approval
    return None


def _grants(run: Run, tool_name: str) -> QuerySet[ApprovalRequest]:
    return run.approvals.filter(
        tool_name=tool_name,
        status=ApprovalStatus.APPROVED,
        consumed_at=None,
        created_at__lt=run.started_at,
    )


def _fits(
    approval: ApprovalRequest, tool_name: str, tool_input: dict[str, Any]
) -> bool:
    """What was asked about, or what a person put in its place."""
    wanted = hash_input(tool_name, tool_input)
    inputs = (approval.tool_input, approval.updated_input)
    return is_about(approval, tool_name, tool_input) or any(
        wanted == hash_input(approval.tool_name, each)
        or _is_same_plan(approval, tool_name, tool_input, of=each)
        for each in inputs
        if each is not None
    )


def undelivered_decisions(run: Run) -> list[ApprovalRequest]:
    """What people answered while no process was there to hear it; oldest first."""
    return list(run.approvals.unheard().select_related("decided_by"))


def deny_on_timeout(approval: ApprovalRequest) -> bool:
    """The session's `on_timeout` is "deny". Returns: False if it was decided."""
    return bool(_end([approval], ApprovalStatus.DENIED, "Approval timed out"))


def cancel_approval(approval: ApprovalRequest) -> bool:
    """The CLI withdrew the call. Returns: False if it was decided."""
    return bool(_end([approval], ApprovalStatus.CANCELLED))


def expire_approvals() -> int:
    """End what nobody answered within its time, and the runs that wait for it."""
    due = ApprovalRequest.objects.filter(
        status=ApprovalStatus.PENDING, expires_at__lte=timezone.now()
    ).order_by("run_id")
    return sum(
        _end(list(together), ApprovalStatus.EXPIRED)
        for _, together in groupby(due, key=lambda approval: approval.run_id)
    )


@transaction.atomic
def _end(
    together: list[ApprovalRequest], status: ApprovalStatus, message: str = ""
) -> int:
    """Settle requests of one run without a person; it may be parked by now.

    Together, since the first one alone would resume a run that leaves no others open.
    Returns: how many were still open.
    """
    first = together[0]
    lock_session(first.session_id)
    won = sum(settling.settle(each, status, message=message) for each in together)
    if won:
        refresh_status(first.session_id)
        runs.resume_if_decided(first.run_id)
    return won


def pending_count(user: User) -> int:
    return ApprovalRequest.objects.answerable_by(user).pending().count()
