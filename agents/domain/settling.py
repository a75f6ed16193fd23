"""Approvals that end without a person's answer: cancelled, expired, or by a rule."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from agents.events.bus import approval_group, publish_on_commit, ring_on_commit
from agents.events.vocabulary import ApprovalResolved
from agents.models import ApprovalRequest, Run, User
from agents.models.approvals import ApprovalStatus

from . import analytics, blocks

DENIED_BY_PERSON = "The user denied this call."


def cancel_pending(run: Run) -> None:
    """Withdraw what the run still asked; called in the transaction that ends it."""
    for approval in run.approvals.filter(status=ApprovalStatus.PENDING):
        settle(approval, ApprovalStatus.CANCELLED)


def settle(
    approval: ApprovalRequest,
    status: ApprovalStatus,
    *,
    channel: str = "system",
    decided_by: User | None = None,
    **facts: Any,
) -> bool:
    """End a pending approval without asking. Returns: False if it was decided.

    `facts` are further columns; `decided_by` is whose word it goes back to.
    """
    won = ApprovalRequest.objects.filter(
        pk=approval.pk, status=ApprovalStatus.PENDING
    ).update(
        status=status,
        decided_at=timezone.now(),
        channel=channel,
        decided_by=decided_by,
        **facts,
    )
    if won:
        approval.refresh_from_db()
        analytics.approval_resolved(approval)
        announce(approval, status, decided_by.get_username() if decided_by else "")
    return bool(won)


def write_denial(run: Run, approval: ApprovalRequest) -> None:
    """Show a call as denied that no process is there to record it for."""
    blocks.write_denial(
        run,
        tool_use_id=approval.tool_use_id,
        tool_name=approval.tool_name,
        reason=approval.message or DENIED_BY_PERSON,
    )


def announce(
    approval: ApprovalRequest, status: ApprovalStatus, decided_by: str = ""
) -> None:
    """Tell the pages, and ring the agent that waits."""
    publish_on_commit(
        ApprovalResolved(
            session_id=approval.session_id,
            approval_id=approval.pk,
            status=status,
            tool_use_id=approval.tool_use_id,
            decided_by=decided_by,
        )
    )
    ring_on_commit(approval_group(approval.pk), {"type": "approval.resolved"})
