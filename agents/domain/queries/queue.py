"""The queue of runs: who is next, and at which place a session stands."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from agents.models import Run
from agents.models.runs import RunState


class WaitingRun(NamedTuple):
    run_id: UUID
    user_id: UUID
    is_child: bool
    """Another agent waits for it, so it may not wait for a slot."""


def waiting_runs(limit: int = 100) -> list[WaitingRun]:
    """The oldest queued runs, next first."""
    queued = Run.objects.filter(state=RunState.QUEUED).order_by("created_at")
    rows = queued.values_list("pk", "session__owner_id", "session__parent_session")
    return [
        WaitingRun(run_id, user_id, parent_id is not None)
        for run_id, user_id, parent_id in rows[:limit]
    ]


def queue_position(session_id: UUID) -> int | None:
    """1 for whoever is next; None when the session does not wait in line."""
    run = Run.objects.filter(session_id=session_id, state=RunState.QUEUED).first()
    if run is None:
        return None
    earlier = Run.objects.filter(
        state=RunState.QUEUED, created_at__lt=run.created_at
    ).count()
    return earlier + 1
