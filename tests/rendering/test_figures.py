"""Numbers and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from agents.rendering.figures import (
    duration_ms,
    relative_time,
    round_tokens,
    tokens,
    usd,
)
from tests.rendering.harmless import text_of


@pytest.mark.parametrize(
    ("micros", "shown"),
    [
        (None, "unknown"),
        (0, "$0.00"),
        (12, "<$0.0001"),
        (12_300, "$0.0123"),
        (999_900, "$0.9999"),
        (1_234_567, "$1.23"),
        (1_234_567_890, "$1,234.57"),
    ],
)
def test_money(micros, shown):
    assert usd(micros) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, "unknown"),
        (0, "0"),
        (999, "999"),
        (12_345, "12.3k"),
        (999_949, "999.9k"),
        (999_950, "1.0M"),
        (1_200_000, "1.2M"),
    ],
)
def test_tokens(count, shown):
    assert tokens(count) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (None, "unknown"),
        (0, "0 ms"),
        (999, "999 ms"),
        (12_340, "12.3 s"),
        (59_960, "1 min 0 s"),
        (125_000, "2 min 5 s"),
        (3_900_000, "1 h 5 min"),
    ],
)
def test_durations(milliseconds, shown):
    assert duration_ms(milliseconds) == shown


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(seconds=-5), "in a moment"),
        (timedelta(minutes=3), "3 min ago"),
        (timedelta(minutes=-3, seconds=-5), "in 3 min"),
        (timedelta(minutes=59, seconds=50), "1 h ago"),
        (timedelta(hours=5), "5 h ago"),
        (timedelta(hours=24), "1 day ago"),
        (timedelta(days=9), "9 days ago"),
    ],
)
def test_distances_in_time(ago, shown):
    assert text_of(relative_time(timezone.now() - ago)) == shown


def test_the_exact_time_is_given_in_the_readers_zone():
    moment = datetime(2020, 1, 2, 23, 30, tzinfo=UTC)

    with timezone.override(ZoneInfo("Europe/Paris")):
        html = relative_time(moment)

    assert html == (
        '<time datetime="2020-01-02T23:30:00+00:00"'
        ' title="3 Jan 2020, 00:30:00 CET">3 Jan 2020</time>'
    )


def test_no_time_is_never():
    assert relative_time(None) == "never"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *((0, "0"), (933, "933"), (4_600, "4.6k"), (9_960, "10k"), (155_172, "155k")),
        *((200_000, "200k"), (999_600, "1M"), (1_000_000, "1M"), (1_250_000, "1.2M")),
    ],
)
def test_tokens_at_a_glance(count: int, text: str) -> None:
    assert round_tokens(count) == text
