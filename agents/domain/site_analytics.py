"""Analytics of the site as a whole: that it was started, and with what."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from agents.models import AnalyticsEvent, Provider, User

from .tracking import record

OPENED = "app.opened"


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
