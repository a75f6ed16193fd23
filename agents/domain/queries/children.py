"""The sessions below a session: its sub-agents, those it invoked, and theirs.

What they cost rolls up: a sub-agent's part stands in its host's total already, an
invoked session's comes on top.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from agents.models import AgentSession, ApprovalRequest, User
from agents.policy.tools import INVOKE_AGENT, SUB_AGENT_TOOLS
from agents.rendering.dom import dom_id

from .approvals import ApprovalCard

MAX_LISTED = 100
_COLUMNS = (
    *("parent_session_id", "host_session_id", "name", "status"),
    *("cost_usd_micros", "cost_is_partial"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """As `agents/sessions/_cost.html` takes it."""

    cost_usd_micros: int
    cost_is_partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """One of them, ready for `agents/sessions/_child.html`."""

    session: AgentSession
    level: int = 1

    @property
    def element_id(self) -> str:
        return dom_id("session", self.session.pk, "link")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """All that stands below one session and may be seen, each after its parent."""

    children: tuple[Child, ...]
    waiting: tuple[ApprovalCard, ...]
    """What invoked sessions ask; a sub-agent's requests are its host's own."""
    own: Cost
    total: Cost

    @property
    def listed(self) -> tuple[Child, ...]:
        return self.children[-MAX_LISTED:]

    @property
    def signature(self) -> tuple[object, ...]:
        """Changes with everything that a page of the session says about them."""
        facts = (
            (each.session.pk, each.session.status, each.session.cost_usd_micros)
            for each in self.children
        )
        return (*facts, *(card.approval.pk for card in self.waiting))


def load_family(session: AgentSession, user: User) -> Family:
    """One query for each level, and two where a session was invoked."""
    below = _below(session, user)
    invoked = [each.session for each in below if not each.session.is_sub_agent]
    return Family(
        children=tuple(below),
        waiting=tuple(_load_waiting(invoked, user)),
        own=_own_cost(session, below),
        total=_total_cost(session, below),
    )


def _below(session: AgentSession, user: User) -> list[Child]:
    by_parent: dict[UUID | None, list[AgentSession]] = defaultdict(list)
    level = [session.pk]
    while level:
        visible = AgentSession.objects.visible_to(user).only(*_COLUMNS)
        found = visible.filter(parent_session__in=level)
        level = []
        for child in found.order_by("created_at", "pk"):
            by_parent[child.parent_session_id].append(child)
            level.append(child.pk)
    return _in_order(by_parent, session.pk, 1)


def _in_order(
    by_parent: dict[UUID | None, list[AgentSession]], parent_id: UUID, level: int
) -> list[Child]:
    ordered: list[Child] = []
    for session in by_parent[parent_id]:
        ordered.append(Child(session=session, level=level))
        ordered += _in_order(by_parent, session.pk, level + 1)
    return ordered


def _own_cost(session: AgentSession, below: Iterable[Child]) -> Cost:
    """Without what its sub-agents spent of it."""
    guests = (
        each.session.cost_usd_micros
        for each in below
        if each.session.host_session_id == session.pk
    )
    return Cost(
        cost_usd_micros=max(session.cost_usd_micros - sum(guests), 0),
        cost_is_partial=session.cost_is_partial,
    )


def _total_cost(session: AgentSession, below: Iterable[Child]) -> Cost:
    """Each call counted once: guests' parts stand in their host's total."""
    counted = {session.pk}
    sessions = [session]
    for each in below:
        if each.session.host_session_id not in counted:
            counted.add(each.session.pk)
            sessions.append(each.session)
    return Cost(
        cost_usd_micros=sum(each.cost_usd_micros for each in sessions),
        cost_is_partial=any(each.cost_is_partial for each in sessions),
    )


def _load_waiting(invoked: list[AgentSession], user: User) -> list[ApprovalCard]:
    if not invoked:
        return []
    ids = [each.pk for each in invoked]
    operable = AgentSession.objects.operable_by(user).filter(pk__in=ids)
    answerable = set(operable.values_list("pk", flat=True))
    pending = ApprovalRequest.objects.filter(session__in=ids).pending()
    return [
        ApprovalCard(
            approval, can_answer=approval.session_id in answerable, viewer=user
        )
        for approval in pending.select_related("session", "decided_by").order_by(
            "created_at", "pk"
        )
    ]


def starts_session(tool_name: str) -> bool:
    """Whether calls of this tool have a child session."""
    return tool_name in SUB_AGENT_TOOLS or tool_name.endswith(f"__{INVOKE_AGENT}")


def load_children_of_calls(
    session: AgentSession, user: User, tool_use_ids: list[str]
) -> dict[str, Child]:
    """The child session of each of these calls in the session's rows."""
    if not tool_use_ids:
        return {}
    host_id = session.host_id
    found = AgentSession.objects.visible_to(user).filter(
        Q(host_session=host_id) | Q(parent_session=host_id),
        parent_tool_use_id__in=tool_use_ids,
    )
    return {each.parent_tool_use_id: Child(session=each) for each in found}
