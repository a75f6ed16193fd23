from __future__ import annotations

import asyncio

from agents.execution.clock import WorkClock
from agents.execution.turn import Turn
from agents.models import Run
from agents.tasks import spawn


class Time:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_only_work_counts() -> None:
    time = Time()
    clock = WorkClock(before_seconds=5, now=time)
    time.seconds += 1000  # before the work begins
    clock.start()
    time.seconds += 10
    clock.hold()
    clock.hold()
    time.seconds += 3600
    clock.release()
    time.seconds += 3600  # one still waits
    clock.release()
    time.seconds += 7

    assert clock.worked_seconds == 5 + 10 + 7
    assert clock.worked_ms == 22_000


def test_one_that_is_held_from_the_start_stands() -> None:
    time = Time()
    clock = WorkClock(now=time)
    clock.hold()
    clock.start()
    time.seconds += 50

    assert clock.worked_seconds == 0
    clock.release()
    time.seconds += 2
    assert clock.worked_seconds == 2


async def test_the_limit_is_not_reached_while_somebody_holds_it() -> None:
    time = Time()
    clock = WorkClock(now=time)
    reached = spawn(clock.until(60), name="test-clock")
    clock.start()
    clock.hold()
    time.seconds += 600
    await asyncio.sleep(0)

    assert not reached.done()
    clock.release()
    time.seconds += 60
    clock.hold()
    clock.release()
    await asyncio.wait_for(reached, 10)


async def test_what_an_asked_agent_takes_is_not_the_askers_time() -> None:
    time = Time()
    turn = Turn(Run(), jailed=True, clock=WorkClock(now=time))
    turn.clock.start()
    time.seconds += 3
    turn.lend_time("toolu_1")
    turn.lend_time("toolu_1")  # heard of twice
    time.seconds += 900
    with turn.waits_for_person():
        time.seconds += 900
    turn.take_time_back("toolu_1")
    turn.take_time_back("toolu_1")
    time.seconds += 4

    assert turn.clock.worked_seconds == 7
