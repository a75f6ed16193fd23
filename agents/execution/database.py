"""The engine's way down to the synchronous layers: one call per unit of work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import ParamSpec, TypeVar

from asgiref.sync import ThreadSensitiveContext
from channels.db import database_sync_to_async
from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")


async def in_database(
    function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run `function` in the database thread of the current context."""
    result: T = await database_sync_to_async(function)(*args, **kwargs)
    return result


@asynccontextmanager
async def own_database_thread() -> AsyncIterator[None]:
    """Give this task, and those it starts and awaits, a thread and a connection.

    Without it all tasks of the process share one: four calls of 0.3 s took 1.2 s. An
    executor of its own, because asgiref would else keep the thread of whoever started
    the task: all runs would wait for each other, and for the next claim.
    """
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")
    try:
        async with ThreadSensitiveContext(executor=executor):
            try:
                yield
            finally:
                await database_sync_to_async(connections.close_all)()
    finally:
        executor.shutdown(wait=False)
