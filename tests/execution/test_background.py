"""Work beside the turns: one at a time per key, bounded, and never in the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from agents.execution import background
from agents.execution.background import Background


@pytest.fixture
async def work(db: None) -> AsyncIterator[Background]:
    running = Background(workers=2)
    running.start()
    yield running
    await running.stop()


class Job:
    """A job that says when it began, and ends when it is let."""

    def __init__(self, *, fails: bool = False) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.runs = 0
        self._fails = fails

    async def __call__(self) -> None:
        self.runs += 1
        self.began.set()
        await self.may_end.wait()
        if self._fails:
            raise ValueError("no luck")


async def test_a_job_that_waits_already_is_done_once(work: Background) -> None:
    first, second, last = Job(), Job(), Job()
    work.submit("a", first)
    work.submit("b", second)
    await asyncio.gather(first.began.wait(), second.began.wait())

    early = Job()
    assert work.submit("c", early)
    assert work.submit("c", last)
    for job in (first, second, last):
        job.may_end.set()

    await last.began.wait()
    assert (early.runs, last.runs) == (0, 1)


async def test_one_key_is_never_worked_on_twice_at_once(work: Background) -> None:
    first, again = Job(), Job()
    work.submit("a", first)
    await first.began.wait()

    assert work.submit("a", again)
    other = Job()
    work.submit("b", other)
    await other.began.wait()
    assert not again.began.is_set()

    first.may_end.set()
    await again.began.wait()
    assert not other.may_end.is_set(), "the other worker was free for it"
    other.may_end.set()
    again.may_end.set()


async def test_a_failure_ends_its_job_only(
    work: Background, caplog: pytest.LogCaptureFixture
) -> None:
    for key in range(4):
        failing = Job(fails=True)
        failing.may_end.set()
        work.submit(key, failing)
    last = Job()
    work.submit("last", last)

    await last.began.wait()

    assert "background job 0 failed" in caplog.text
    last.may_end.set()


async def test_what_does_not_fit_is_dropped(
    work: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "CAPACITY", 1)
    busy = [Job(), Job()]
    for number, job in enumerate(busy):
        work.submit(number, job)
        await job.began.wait()

    waits = Job()
    assert work.submit("waits", waits)
    assert not work.submit("no room", Job())
    for job in busy:
        job.may_end.set()
    await waits.began.wait()
    waits.may_end.set()


async def test_stopping_ends_what_is_under_way(db: None) -> None:
    work = Background(workers=1)
    assert not work.submit("too early", Job())
    work.start()
    job, waiting = Job(), Job()
    work.submit("a", job)
    work.submit("b", waiting)
    await job.began.wait()

    await work.stop()

    assert not waiting.began.is_set()
    assert not work.submit("too late", Job())
