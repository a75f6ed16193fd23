"""Which messages a branch shows: its own, and its ancestors' before each fork."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from agents.models import MessageBranch


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages of one branch; `before_seq` is where a descendant forked off."""

    branch_id: UUID
    before_seq: int | None


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
        condition |= own
    return condition
