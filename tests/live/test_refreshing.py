"""Many bells, few refreshes."""

from __future__ import annotations

import asyncio

import pytest

from agents.live import refreshing
from agents.live.refreshing import Refresher


class Surroundings:
    """Counts its refreshes; each takes until the test lets it go on."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[int] = asyncio.Queue()
        self.count = 0
        self.may_end = asyncio.Event()

    async def refresh(self) -> None:
        self.count += 1
        self.begun.put_nowait(self.count)
        await self.may_end.wait()


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refreshing, "PAUSE_SECONDS", 0)


async def test_the_first_bell_refreshes_at_once() -> None:
    surroundings = Surroundings()
    refresher = Refresher(surroundings.refresh, name="test")

    refresher.ring()

    assert await surroundings.begun.get() == 1
    refresher.stop()


async def test_bells_during_a_refresh_are_answered_by_one_more() -> None:
    surroundings = Surroundings()
    refresher = Refresher(surroundings.refresh, name="test")
    refresher.ring()
    await surroundings.begun.get()

    for _ in range(5):
        refresher.ring()
    surroundings.may_end.set()
    await surroundings.begun.get()
    await refresher.until_calm()

    assert surroundings.count == 2


async def test_a_bell_after_the_calm_refreshes_again() -> None:
    surroundings = Surroundings()
    surroundings.may_end.set()
    refresher = Refresher(surroundings.refresh, name="test")
    refresher.ring()
    await refresher.until_calm()

    refresher.ring()
    await refresher.until_calm()

    assert surroundings.count == 2


async def test_a_stopped_refresher_is_silent() -> None:
    surroundings = Surroundings()
    refresher = Refresher(surroundings.refresh, name="test")
    refresher.ring()
    await surroundings.begun.get()

    refresher.stop()
    await refresher.until_calm()
    refresher.ring()

    assert surroundings.begun.empty()
