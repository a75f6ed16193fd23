"""Doing several things at the same moment, each on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from django.db import connection

T = TypeVar("T")


def at_once(*functions: Callable[[], T]) -> list[T | Exception]:
    """Start all together. Returns: what each gave back, or the exception it raised."""
    barrier = Barrier(len(functions))

    def attempt(function: Callable[[], T]) -> T | Exception:
        barrier.wait()
        try:
            return function()
        except Exception as error:  # noqa: BLE001  the test looks at it
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(functions)) as pool:
        return list(pool.map(attempt, functions))
