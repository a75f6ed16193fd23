"""Asking a person whether a turn may spend more than its budget.

The run is put aside meanwhile, without a process: it goes on by itself when somebody
approves, and ends when somebody denies.
"""

from __future__ import annotations

from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from agents.models import ApprovalRequest, Run
from agents.models.approvals import ApprovalKind, ApprovalStatus

from . import approvals, budgets
from .locks import lock_run
from .spending import Account

TOOL_NAME = "Budget"
RAISED_MEANWHILE = "The budget was raised meanwhile."


@transaction.atomic
def ask_to_exceed(run: Run) -> ApprovalRequest:
    """Open the request for the budget that stopped the run.

    If there is room again by now, it is answered already.

    Raises: LeaseLostError.
    """
    lock_run(run)
    account = budgets.find_used_up(run.session_id)
    approval = approvals.open_approval(
        run,
        kind=ApprovalKind.BUDGET,
        tool_use_id=f"budget-{uuid4()}",
        tool_name=TOOL_NAME,
        tool_input=_facts(account) if account else {},
        reason=budgets.sentence_of(account) if account else RAISED_MEANWHILE,
    )
    if account is None:
        ApprovalRequest.objects.filter(pk=approval.pk).update(
            status=ApprovalStatus.APPROVED,
            decided_at=timezone.now(),
            channel="system",
        )
    return approval


def _facts(account: Account) -> dict[str, object]:
    return {
        "budget_id": str(budgets.row_of(account).pk),
        "scope": account.scope.value,
        "spent_usd_micros": account.spent_usd_micros,
        "limit_usd_micros": account.limit_usd_micros,
        "raises_to_usd_micros": account.raises_to_usd_micros,
    }
