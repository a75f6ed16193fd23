"""`spawn`, the only maker of asyncio tasks.

A bare `asyncio.create_task` may be garbage-collected mid-flight and swallows its
exception; a spawned task is kept, named and observed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

_running: set[asyncio.Task[Any]] = set()


def spawn(coroutine: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """Start `coroutine` as a task that is kept alive until it ends.

    An exception nobody awaits is logged with the task's name.
    """
    task = asyncio.get_running_loop().create_task(coroutine, name=name)
    _running.add(task)
    task.add_done_callback(_observe)
    return task


def _observe(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        logger.error("task %s failed", task.get_name(), exc_info=error)
