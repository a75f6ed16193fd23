"""The seam between writing a run and starting it.

The implementation is named by `settings.DISPATCHER` and lives in
`execution/dispatch/`, above this layer; hence the look-up by name.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string


class Dispatcher(Protocol):
    def enqueue(self, run_id: UUID) -> None:
        """Have some worker try to claim the run.

        Called inside the transaction that wrote the run; takes effect only when
        that commits. A lost call is found by the janitor.
        """


@lru_cache
def _load(path: str) -> Dispatcher:
    dispatcher: Dispatcher = import_string(path)()
    return dispatcher


def dispatcher() -> Dispatcher:
    return _load(settings.DISPATCHER)
