"""Analytics of the site as a whole: its starts, its busy minutes, what it has cost."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Count, Sum
from django.utils import timezone

from agents.models import AgentSession, AnalyticsEvent, CostEntry, Provider, User
from agents.models.sessions import ACTIVE_STATUSES

from .tracking import record

OPENED = "app.opened"
COST = "cost.snapshot"


@transaction.atomic
def app_opened(*, version: str) -> None:
    """A server was started on this data."""
    kinds = list(Provider.objects.values_list("kind", flat=True))
    record(
        OPENED,
        provider_count=len(kinds),
        providers=sorted(set(kinds)),
        is_first_open=not AnalyticsEvent.objects.filter(type=OPENED).exists(),
        days_since_install=_days_since_install(),
        app_version=version,
    )


def _days_since_install() -> int:
    """Since somebody made the first account; 0 before that."""
    joined = User.objects.order_by("date_joined").values_list("date_joined", flat=True)
    first = joined.first()
    return max((timezone.now() - first).days, 0) if first else 0


@transaction.atomic
def app_heartbeat() -> bool:
    """How busy it is, and what all that has cost by now, where that changed.

    Returns: False when no agent is at work; then nothing is written, so that an idle
        site does not fill its disk.
    """
    active = AgentSession.objects.filter(status__in=ACTIVE_STATUSES).count()
    if not active:
        return False
    record("app.heartbeat", active_session_count=active)
    totals = _totals()
    last = AnalyticsEvent.objects.filter(type=COST).order_by("-pk").first()
    if last is None or last.data != totals:
        record(COST, **totals)
    return True


def _totals() -> dict[str, Any]:
    sums = CostEntry.objects.aggregate(
        call_count=Count("pk"),
        usd_micros=Sum("usd_micros"),
        input_tokens=Sum("input_tokens"),
        output_tokens=Sum("output_tokens"),
    )
    return {
        "cost_usd": (sums["usd_micros"] or 0) / 1_000_000,
        "call_count": sums["call_count"],
        "input_tokens": sums["input_tokens"] or 0,
        "output_tokens": sums["output_tokens"] or 0,
    }
