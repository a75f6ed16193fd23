from __future__ import annotations

import asyncio
import threading

from agents.execution.database import in_database, own_database_thread
from agents.tasks import spawn


async def thread_of_its_own() -> int:
    async with own_database_thread():
        return await in_database(threading.get_ident)


async def test_a_task_has_a_thread_of_its_own() -> None:
    async with own_database_thread():
        mine = await in_database(threading.get_ident)
        theirs = await asyncio.gather(
            spawn(thread_of_its_own(), name="one"),
            spawn(thread_of_its_own(), name="another"),
        )
        mine_again = await in_database(threading.get_ident)

    assert mine_again == mine
    assert mine not in theirs


async def test_no_task_waits_for_what_another_one_does_in_the_database() -> None:
    """Also not one for the task that started it, as runs are by the next claim."""
    is_begun, may_end = threading.Event(), threading.Event()

    def slow() -> None:
        is_begun.set()
        assert may_end.wait(30)

    async with own_database_thread():
        slowly = spawn(in_database(slow), name="slow")
        await asyncio.to_thread(is_begun.wait, 30)
        await spawn(thread_of_its_own(), name="quick")
        may_end.set()
        await slowly


async def test_a_thread_ends_with_its_task() -> None:
    def thread() -> threading.Thread:
        return threading.current_thread()

    async with own_database_thread():
        used = await in_database(thread)

    await asyncio.to_thread(used.join, 30)
    assert not used.is_alive()
