"""What stands around every page: the rail's sessions and the count of what waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Sum
from django.urls import reverse

from agents.models import AgentSession, ApprovalRequest, User
from agents.models.sessions import ACTIVE_STATUSES

RAIL_SESSIONS = 12
_COLUMNS = (
    "pk",
    "name",
    "status",
    "last_preview",
    "cost_usd_micros",
    "cost_is_partial",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RailSession:
    id: UUID
    name: str
    status: str
    preview: str
    cost_usd_micros: int | None  # None: no call of it has a known price

    @property
    def url(self) -> str:
        return reverse("session_detail", args=[self.id])


@dataclass(frozen=True, slots=True, kw_only=True)
class RailContext:
    """Each session stands in one group: at work, else pinned, else recent."""

    running: list[RailSession]
    recent: list[RailSession]
    pinned: list[RailSession]
    pending_count: int


def rail(user: User) -> RailContext:
    """The rail of `user`, in four queries."""
    sessions = (
        AgentSession.objects.visible_to(user)
        .filter(parent_session=None)
        .recent_first()
        .values_list(*_COLUMNS)
    )
    resting = sessions.filter(closed_at=None).exclude(status__in=ACTIVE_STATUSES)
    return RailContext(
        running=_entries(sessions.filter(status__in=ACTIVE_STATUSES)),
        recent=_entries(resting.filter(pinned=False)[:RAIL_SESSIONS]),
        pinned=_entries(resting.filter(pinned=True)),
        pending_count=ApprovalRequest.objects.answerable_by(user).pending().count(),
    )


def _entries(
    rows: Iterable[tuple[UUID, str, str, str, int, bool]],
) -> list[RailSession]:
    return [
        RailSession(
            id=session_id,
            name=name,
            status=status,
            preview=preview,
            cost_usd_micros=None if is_partial and not cost else cost,
        )
        for session_id, name, status, preview, cost, is_partial in rows
    ]


def rail_fingerprint(user: User) -> tuple[int, int, int]:
    """Changes with everything that a rail, list or inbox may show; two queries."""
    sums = AgentSession.objects.visible_to(user).aggregate(
        count=Count("pk"), seqs=Sum("last_seq")
    )
    pending = ApprovalRequest.objects.answerable_by(user).pending().count()
    return sums["count"], sums["seqs"] or 0, pending
