from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from agents.gateway.backoff import LONGEST_WAIT_SECONDS, Backoff
from agents.gateway.lines import Upstream

from .caller import upstream

KEY = upstream("http://x")


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_nothing_waits_without_a_refusal() -> None:
    assert Backoff(Clock()).remaining_seconds(KEY) == 0


@pytest.mark.parametrize(
    "other",
    [
        upstream("http://x", api_key="other"),
        upstream("http://y"),
    ],
)
def test_only_the_refused_key_waits(other: Upstream) -> None:
    backoff = Backoff(Clock())
    backoff.note(KEY, 5)

    assert backoff.remaining_seconds(KEY) == 5
    assert backoff.remaining_seconds(other) == 0


def test_the_wait_runs_out() -> None:
    clock = Clock()
    backoff = Backoff(clock)
    backoff.note(KEY, 5)
    clock.now += 5

    assert backoff.remaining_seconds(KEY) == 0


def test_the_later_end_counts() -> None:
    backoff = Backoff(Clock())
    backoff.note(KEY, 5)
    backoff.note(KEY, 2)

    assert backoff.remaining_seconds(KEY) == 5


def test_no_provider_can_hold_calls_for_ever() -> None:
    backoff = Backoff(Clock())
    backoff.note(KEY, 86_400)

    assert backoff.remaining_seconds(KEY) == LONGEST_WAIT_SECONDS


async def test_refusals_that_keep_coming_cannot_either() -> None:
    clock = Clock()
    backoff = Backoff(clock)
    backoff.note(KEY, 0.001)
    waiting = asyncio.ensure_future(backoff.wait(KEY))
    await asyncio.sleep(0)

    clock.now += LONGEST_WAIT_SECONDS
    backoff.note(KEY, 30)

    async with asyncio.timeout(20):
        await waiting
    assert backoff.remaining_seconds(KEY) == 30
