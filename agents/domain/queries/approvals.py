"""Approvals as cards show them: what would run, who decided, who may decide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from agents.domain.approvals import preview_rule
from agents.domain.releases import POLICY_CHANNEL, RULE_CHANNEL
from agents.models import AgentSession, ApprovalRequest, Message, User
from agents.models.approvals import ApprovalKind, ApprovalScope, ApprovalStatus
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.sessions import Network
from agents.policy.tools import ToolClass, classify_tool
from agents.rendering.approvals import ApprovalView, approval_view
from agents.rendering.dom import dom_id

_ICONS: dict[str, str] = {
    ApprovalStatus.APPROVED: "shield-check",
    ApprovalStatus.DENIED: "shield-x",
    ApprovalStatus.EXPIRED: "clock",
    ApprovalStatus.CANCELLED: "circle-x",
}
_WAYS: dict[str, str] = {
    RULE_CHANNEL: "a rule of ",
    POLICY_CHANNEL: "the security settings, changed by ",
}
_SCOPES: dict[str, str] = {
    ApprovalScope.SESSION: ", for this session",
    ApprovalScope.ALWAYS: ", always",
}


SPEND_MORE = "Spend more than the budget"


@dataclass(frozen=True)
class ApprovalCard:
    """One approval, ready for `agents/approvals/_card.html`."""

    approval: ApprovalRequest
    can_answer: bool
    viewer: User
    # What a person put into the card and the server refused; it stays in the form.
    draft: dict[str, list[str]] | None = None
    error: str = ""
    sub_agent: AgentSession | None = None
    """Who asks, where it is not the session's own agent and the place doesn't say."""
    refusal: str = ""
    """Why the call was refused although a person approved it."""

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
        if kind == ApprovalKind.BUDGET:
            return "agents/approvals/_budget.html"
        return "agents/approvals/_decision.html"

    @property
    def icon(self) -> str:
        stands_for = "wallet" if self.is_budget else self.view.tool.icon
        return _ICONS.get(self.state) or stands_for

    @property
    def is_budget(self) -> bool:
        return self.approval.kind == ApprovalKind.BUDGET

    @property
    def may_raise(self) -> bool:
        """Whether this person may approve more of the budget, and not only deny it."""
        return self.approval.may_be_raised_by(self.viewer)

    @property
    def raises_to_usd_micros(self) -> int:
        raises_to: int = self.approval.tool_input.get("raises_to_usd_micros", 0)
        return raises_to

    @property
    def is_elsewhere(self) -> bool:
        """Whether it comes from a session that an owner is only asked to pay for."""
        approval = self.approval
        is_wide = approval.is_of_site_wide_budget
        return is_wide and not may_answer(self.viewer, approval.session)

    @property
    def title(self) -> str:
        return SPEND_MORE if self.is_budget else self.view.headline

    @property
    def outcome(self) -> str:
        """How it ended and by whom, in one line."""
        word = ApprovalStatus(self.state).label.lower()
        if self.approval.kind == ApprovalKind.QUESTION and word == "approved":
            word = "answered"
        by = self.approval.decided_by
        way = _WAYS.get(self.approval.channel, "")
        who = f" by {way}{by.get_username()}" if by else ""
        scope = _SCOPES.get(self.approval.scope, "")
        but = ", but refused" if self.refusal else ""
        return f"{self.title}: {word}{who}{scope}{but}"

    @cached_property
    def rule(self) -> str:
        """What a standing approval would allow; empty where none is narrow enough."""
        return str(preview_rule(self.approval) or "")

    @property
    def network_note(self) -> str:
        """What the session's programs can reach, on the card of a command."""
        if classify_tool(self.approval.tool_name, {}) != ToolClass.EXECUTE:
            return ""
        return "open" if self.approval.session.network == Network.OPEN else "off"

    @property
    def is_shortened(self) -> bool:
        return bool(self.view.tool.context["truncated"])

    @property
    def is_edited(self) -> bool:
        edited = self.approval.updated_input is not None
        return edited and self.approval.kind == ApprovalKind.APPROVAL

    @property
    def message_text(self) -> str:
        return self._typed("message", "")

    @property
    def input_text(self) -> str:
        """The JSON to edit; what was typed and refused comes back as it was."""
        return self._typed("updated_input", self.view.editable_json)

    @property
    def is_input_typed(self) -> bool:
        return self.input_text != self.view.editable_json

    def _typed(self, name: str, default: str) -> str:
        return (self.draft or {}).get(name, [default])[0]

    @property
    def questions(self) -> list[Question]:
        context: Any = self.view.tool.context
        draft = self.draft or {}
        return [
            Question(
                number=number,
                asked=asked,
                chosen=frozenset(draft.get(f"answer-{number}", [])),
                other=draft.get(f"other-{number}", [""])[0],
            )
            for number, asked in enumerate(context.get("questions", []))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of a form, with what a person has chosen so far."""

    number: int
    asked: dict[str, Any]
    chosen: frozenset[str]
    other: str

    @property
    def options(self) -> list[dict[str, Any]]:
        return [
            {**option, "is_chosen": option["value"] in self.chosen}
            for option in self.asked["options"]
        ]


def refusal_in(approval: ApprovalRequest, result: Message | None) -> str:
    """Why an approved call did not run: its edit, or a newer mode, forbids it."""
    if result is None or result.outcome != ToolOutcome.DENIED:
        return ""
    return result.text if approval.status == ApprovalStatus.APPROVED else ""


def may_answer(user: User, session: AgentSession) -> bool:
    return AgentSession.objects.operable_by(user).filter(pk=session.pk).exists()


def load_inbox(user: User) -> list[ApprovalCard]:
    """Everything that waits for this person, oldest first; two queries at most."""
    waiting = (
        ApprovalRequest.objects.answerable_by(user)
        .pending()
        .select_related("session__owner", "decided_by")
        .order_by("created_at", "pk")
    )
    agents = _sub_agents(waiting)
    return [
        ApprovalCard(
            approval,
            can_answer=True,
            viewer=user,
            sub_agent=agents.get(_asker(approval)),
        )
        for approval in waiting
    ]


def _asker(approval: ApprovalRequest) -> tuple[UUID | None, str]:
    return approval.session_id, approval.agent_id


def _sub_agents(
    asking: Iterable[ApprovalRequest],
) -> dict[tuple[UUID | None, str], AgentSession]:
    """By their hosts and the CLI's ids; one query, if any of them asks."""
    theirs = [approval for approval in asking if approval.agent_id]
    if not theirs:
        return {}
    found = AgentSession.objects.filter(
        host_session__in=[approval.session_id for approval in theirs],
        agent_id__in=[approval.agent_id for approval in theirs],
    ).only("host_session_id", "agent_id", "name")
    return {(agent.host_session_id, agent.agent_id): agent for agent in found}


def load_card(approval_id: UUID, user: User) -> ApprovalCard | None:
    """The card of one approval that the person may see."""
    approval = (
        ApprovalRequest.objects.visible_to(user)
        .select_related("session__owner", "decided_by")
        .filter(pk=approval_id)
        .first()
    )
    if approval is None:
        return None
    return ApprovalCard(
        approval,
        can_answer=ApprovalRequest.objects.answerable_by(user)
        .filter(pk=approval.pk)
        .exists(),
        viewer=user,
        sub_agent=_sub_agents([approval]).get(_asker(approval)),
        refusal=refusal_in(approval, _result_of(approval)),
    )


def _result_of(approval: ApprovalRequest) -> Message | None:
    if approval.status != ApprovalStatus.APPROVED:
        return None
    return approval.session.messages.filter(
        tool_use_id=approval.tool_use_id, role=MessageRole.TOOL_RESULT
    ).first()
