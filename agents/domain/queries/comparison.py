"""Two branches side by side: what each says after they part, its cost and time."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import DurationField, ExpressionWrapper, F, Sum

from agents.models import AgentSession, MessageBranch, Run, User

from .branches import Stretch, lineage, within
from .items import Item
from .transcript import load_stretches


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    branch: MessageBranch
    items: tuple[Item, ...]
    cost_usd_micros: int
    duration_ms: int
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    shared_messages: int
    left: Side
    right: Side


def load_comparison(
    session: AgentSession, user: User, left: MessageBranch, right: MessageBranch
) -> Comparison:
    """What both share is only counted; each side shows what it has of its own."""
    left_line = lineage(session.pk, left.pk)
    right_line = lineage(session.pk, right.pk)
    shared = _shared(left_line, right_line)
    return Comparison(
        shared_messages=_count(session, shared),
        left=_side(session, user, left, _own(left_line, shared)),
        right=_side(session, user, right, _own(right_line, shared)),
    )


def _count(session: AgentSession, stretches: list[Stretch]) -> int:
    spoken = session.messages.filter(
        within(stretches), role__in=("user", "assistant"), hidden=False
    )
    return spoken.filter(parent_tool_use_id="").count()


def _shared(left: list[Stretch], right: list[Stretch]) -> list[Stretch]:
    """The common part of two lineages: per branch, up to the earlier cut."""
    cuts = {stretch.branch_id: stretch.before_seq for stretch in right}
    common = []
    for stretch in left:
        if stretch.branch_id in cuts:
            seqs = [stretch.before_seq, cuts[stretch.branch_id]]
            known = [seq for seq in seqs if seq is not None]
            common.append(
                Stretch(stretch.branch_id, before_seq=min(known) if known else None)
            )
    return common


def _own(line: list[Stretch], shared: list[Stretch]) -> list[Stretch]:
    ends = {stretch.branch_id: stretch.before_seq for stretch in shared}
    own = []
    for stretch in line:
        if stretch.branch_id not in ends:
            own.append(stretch)
        elif ends[stretch.branch_id] != stretch.before_seq:
            own.append(
                Stretch(
                    stretch.branch_id,
                    stretch.before_seq,
                    from_seq=ends[stretch.branch_id],
                )
            )
    return own


def _side(
    session: AgentSession, user: User, branch: MessageBranch, own: list[Stretch]
) -> Side:
    items = load_stretches(session, user, own)
    run_ids = {item.message.run_id for item in items if item.message.run_id}
    took = ExpressionWrapper(
        F("finished_at") - F("started_at"), output_field=DurationField()
    )
    totals = Run.objects.filter(pk__in=run_ids).aggregate(
        cost=Sum("cost_usd_micros"), took=Sum(took)
    )
    duration = totals["took"]
    return Side(
        branch=branch,
        items=items,
        cost_usd_micros=totals["cost"] or 0,
        duration_ms=max(0, int(duration.total_seconds() * 1000)) if duration else 0,
        turns=len(run_ids),
    )
