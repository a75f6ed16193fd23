from __future__ import annotations

import asyncio
import gc
import logging
import weakref

import pytest

from agents.tasks import spawn


async def fail() -> None:
    raise ValueError("secret of the trade")


async def test_a_task_gives_back_its_result_and_has_its_name() -> None:
    async def answer() -> int:
        return 42

    task = spawn(answer(), name="answer")

    assert task.get_name() == "answer"
    assert await task == 42


async def test_a_failure_that_nobody_awaits_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    task = spawn(fail(), name="failing-task")

    await asyncio.wait({task})
    await asyncio.sleep(0)  # callbacks run one turn of the loop later

    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "task failing-task failed"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


async def test_who_awaits_gets_the_exception() -> None:
    with pytest.raises(ValueError, match="trade"):
        await spawn(fail(), name="failing-task")


async def test_a_cancelled_task_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    task = spawn(asyncio.Event().wait(), name="waiting")

    task.cancel()
    await asyncio.wait({task})
    await asyncio.sleep(0)

    assert task.cancelled()
    assert caplog.records == []


async def test_a_task_that_nobody_keeps_lives_until_its_end() -> None:
    bell = asyncio.Event()
    rung = asyncio.Event()

    async def wait_and_ring() -> None:
        await bell.wait()
        rung.set()

    kept = weakref.ref(spawn(wait_and_ring(), name="kept"))
    gc.collect()
    assert kept() is not None

    bell.set()
    async with asyncio.timeout(10):
        await rung.wait()
    await asyncio.sleep(0)
    gc.collect()
    assert kept() is None
