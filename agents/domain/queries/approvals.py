"""Approvals as cards show them: what would run, who decided, who may decide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from agents.models import AgentSession, ApprovalRequest, User
from agents.models.approvals import ApprovalKind, ApprovalStatus
from agents.rendering.approvals import ApprovalView, approval_view
from agents.rendering.dom import dom_id


@dataclass(frozen=True)
class ApprovalCard:
    """One approval, ready for `agents/approvals/_card.html`."""

    approval: ApprovalRequest
    can_answer: bool
    # What a person typed into the card and the server refused; it stays in the form.
    draft: dict[str, str] | None = None
    error: str = ""

    @property
    def element_id(self) -> str:
        return dom_id("approval", self.approval.pk)

    @cached_property
    def is_pending(self) -> bool:
        return self.approval.is_pending

    @property
    def state(self) -> str:
        """The status; what nobody answered in time is over, swept up or not."""
        if self.approval.status == ApprovalStatus.PENDING and not self.is_pending:
            return ApprovalStatus.EXPIRED
        return self.approval.status

    @cached_property
    def view(self) -> ApprovalView:
        approval = self.approval
        return approval_view(approval.tool_name, approval.tool_input)

    @property
    def template(self) -> str:
        """Which form the card holds; a malformed question gets Approve and Deny."""
        kind = self.approval.kind
        if kind == ApprovalKind.QUESTION and self.view.tool.kind == "question":
            return "agents/approvals/_question.html"
        if kind == ApprovalKind.PLAN:
            return "agents/approvals/_plan.html"
        return "agents/approvals/_decision.html"

    @property
    def is_edited(self) -> bool:
        return (
            self.approval.updated_input is not None
            and self.approval.kind == ApprovalKind.APPROVAL
        )


def load_cards(
    approvals: Iterable[ApprovalRequest], user: User, session: AgentSession
) -> list[ApprovalCard]:
    can_answer = may_answer(user, session)
    return [ApprovalCard(approval, can_answer) for approval in approvals]


def may_answer(user: User, session: AgentSession) -> bool:
    return AgentSession.objects.operable_by(user).filter(pk=session.pk).exists()


def load_inbox(user: User) -> list[ApprovalCard]:
    """Everything that waits for this person, oldest first; one query."""
    waiting = (
        ApprovalRequest.objects.answerable_by(user)
        .pending()
        .select_related("session", "decided_by")
        .order_by("created_at", "pk")
    )
    return [ApprovalCard(approval, can_answer=True) for approval in waiting]


def load_card(approval_id: UUID, user: User) -> ApprovalCard | None:
    """The card of one approval that the person may see."""
    approval = (
        ApprovalRequest.objects.visible_to(user)
        .select_related("session", "decided_by")
        .filter(pk=approval_id)
        .first()
    )
    if approval is None:
        return None
    return ApprovalCard(approval, may_answer(user, approval.session))
