from __future__ import annotations

import tomllib
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

import openswarm
from agents.domain.site_analytics import app_opened
from agents.models import AnalyticsEvent, Provider, User
from agents.models.providers import ProviderKind

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


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())

    assert openswarm.__version__ == project["project"]["version"]
