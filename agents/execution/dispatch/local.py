"""Starts queued runs in this very process: the embedded mode's dispatcher."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from agents.execution import supervisor


class LocalDispatcher:
    def enqueue(self, run_id: UUID) -> None:
        """Wake the supervisor after the commit.

        A process without one (a management command, a test) starts nothing; the
        supervisor looks for queued runs by itself every few seconds.
        """
        transaction.on_commit(lambda: supervisor.wake(run_id))
