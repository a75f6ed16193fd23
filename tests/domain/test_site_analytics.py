from __future__ import annotations

import tomllib
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

import openswarm
from agents.domain.site_analytics import app_heartbeat, app_opened
from agents.domain.usage import Usage, record_usage
from agents.models import AnalyticsEvent, Provider, Run, User
from agents.models.providers import ProviderKind
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_start_says_with_what_and_whether_it_is_the_first(alice: User) -> None:
    User.objects.update(date_joined=timezone.now() - timedelta(days=3, hours=1))
    Provider.objects.create(name="Claude", kind=ProviderKind.ANTHROPIC)
    Provider.objects.create(name="Other", kind=ProviderKind.ANTHROPIC)
    kinds = list(Provider.objects.values_list("kind", flat=True))

    app_opened(version="1.2.3")
    app_opened(version="1.2.4")

    first, second = AnalyticsEvent.objects.filter(type="app.opened").order_by("pk")
    assert first.data == {
        "provider_count": len(kinds),
        "providers": sorted(set(kinds)),
        "is_first_open": True,
        "days_since_install": 3,
        "app_version": "1.2.3",
    }
    assert (second.data["is_first_open"], second.data["app_version"]) == (
        False,
        "1.2.4",
    )
    assert (first.user, first.session) == (None, None)


def test_before_anybody_has_an_account_it_is_day_nought() -> None:
    app_opened(version="1")

    assert AnalyticsEvent.objects.get().data["days_since_install"] == 0


def test_a_busy_minute_says_how_busy_and_what_all_has_cost(run: Run) -> None:
    record_usage(
        session_id=run.session_id,
        provider_id=None,
        message_id="msg_1",
        model="claude-sonnet-5-5",
        usage=Usage(input_tokens=100, output_tokens=10),
    )

    assert app_heartbeat()
    assert app_heartbeat()

    beats = AnalyticsEvent.objects.filter(type="app.heartbeat")
    assert [beat.data for beat in beats] == [{"active_session_count": 1}] * 2
    assert AnalyticsEvent.objects.get(type="cost.snapshot").data == {
        "cost_usd": 0.00045,
        "call_count": 1,
        "input_tokens": 100,
        "output_tokens": 10,
    }


def test_an_idle_site_writes_nothing(run: Run) -> None:
    factories.end_turn(run)

    assert not app_heartbeat()

    assert not AnalyticsEvent.objects.filter(type="app.heartbeat").exists()


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())

    assert openswarm.__version__ == project["project"]["version"]
