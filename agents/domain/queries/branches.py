"""Which messages a branch shows, and which other ways lead on from each of them."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery

from agents.models import Message, MessageBranch
from agents.models.messages import MessageRole


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages of one branch; `before_seq` is where a descendant forked off."""

    branch_id: UUID
    before_seq: int | None
    from_seq: int | None = None


def lineage(session_id: UUID, branch_id: UUID | None) -> list[Stretch]:
    """The stretches that make up a branch, its own first; one query.

    A fork point is the message that is replaced, so what counts is strictly before
    it, and an ancestor is cut at the earliest fork on the way down.
    """
    rows = MessageBranch.objects.filter(session_id=session_id).values_list(
        "pk", "parent_branch_id", "fork_point_message__seq"
    )
    known = {pk: (parent, fork_seq) for pk, parent, fork_seq in rows}
    stretches: list[Stretch] = []
    cut: int | None = None
    while branch_id in known:
        stretches.append(Stretch(branch_id, cut))
        branch_id, fork_seq = known.pop(branch_id)
        cut = min(seq for seq in (cut, fork_seq, _NEVER) if seq is not None)
    return stretches


_NEVER = 2**63 - 1


def within(stretches: list[Stretch]) -> Q:
    """The messages of a lineage, as a filter."""
    condition = Q(pk__in=[])
    for stretch in stretches:
        own = Q(branch_id=stretch.branch_id)
        if stretch.before_seq is not None:
            own &= Q(seq__lt=stretch.before_seq)
        if stretch.from_seq is not None:
            own &= Q(seq__gte=stretch.from_seq)
        condition |= own
    return condition


@dataclass(frozen=True, slots=True)
class Navigator:
    """The alternatives to one message, as "2 of 3" with its neighbours."""

    branch_ids: tuple[UUID, ...]
    position: int

    @property
    def count(self) -> int:
        return len(self.branch_ids)

    @property
    def branch_id(self) -> UUID:
        return self.branch_ids[self.position - 1]

    @property
    def other_ids(self) -> tuple[UUID, ...]:
        return tuple(each for each in self.branch_ids if each != self.branch_id)

    @property
    def previous_id(self) -> UUID | None:
        return self.branch_ids[self.position - 2] if self.position > 1 else None

    @property
    def next_id(self) -> UUID | None:
        return self.branch_ids[self.position] if self.position < self.count else None


def load_navigators(session_id: UUID) -> dict[UUID, Navigator]:
    """By message: the ways to go on in its place, where there are several; one query.

    A message that was replaced, and each that a branch began with in its place, are
    alternatives of each other.
    """
    families: dict[UUID, list[tuple[UUID, UUID]]] = {}
    for point_id, original_id, branch_id, first_id in _forks(session_id):
        family = families.setdefault(point_id, [(original_id, point_id)])
        if first_id is not None:
            family.append((branch_id, first_id))
    return {
        message_id: Navigator(tuple(branch for branch, _ in family), position)
        for family in families.values()
        if len(family) > 1
        for position, (_, message_id) in enumerate(family, start=1)
    }


def _forks(session_id: UUID) -> list[tuple[UUID, UUID, UUID, UUID | None]]:
    """Oldest first: (replaced message, its branch, new branch, its first message)."""
    said = Message.objects.delivered().filter(role=MessageRole.USER, hidden=False)
    first = said.filter(branch_id=OuterRef("pk")).order_by("seq")
    forked = MessageBranch.objects.filter(
        # One that nobody sees is where the model began afresh: no alternative.
        session_id=session_id,
        fork_point_message__hidden=False,
    ).annotate(first_id=Subquery(first.values("pk")[:1]))
    return list(
        forked.order_by("created_at").values_list(
            "fork_point_message_id", "parent_branch_id", "pk", "first_id"
        )
    )
