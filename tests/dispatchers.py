"""Dispatchers for tests, named by `settings.DISPATCHER`."""

from __future__ import annotations

from uuid import UUID


class BrokenQueueError(Exception):
    pass


class BrokenDispatcher:
    def enqueue(self, run_id: UUID) -> None:
        raise BrokenQueueError


class ListingDispatcher:
    enqueued: list[UUID] = []

    def enqueue(self, run_id: UUID) -> None:
        self.enqueued.append(run_id)
