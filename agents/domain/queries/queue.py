"""The queue of runs: who is next, and at which place a session stands."""

from __future__ import annotations

from uuid import UUID

from agents.models import Run
from agents.models.runs import RunState


def waiting_runs(limit: int = 100) -> list[tuple[UUID, UUID]]:
    """The oldest queued runs as (run id, session owner's id), next first."""
    queued = Run.objects.filter(state=RunState.QUEUED).order_by("created_at")
    return list(queued.values_list("pk", "session__owner_id")[:limit])


def queue_position(session_id: UUID) -> int | None:
    """1 for whoever is next; None when the session does not wait in line."""
    run = Run.objects.filter(session_id=session_id, state=RunState.QUEUED).first()
    if run is None:
        return None
    earlier = Run.objects.filter(
        state=RunState.QUEUED, created_at__lt=run.created_at
    ).count()
    return earlier + 1
