"""Steps of a turn: one message of the model each, with its tool calls; and what
self-correction made of those that failed."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from agents.events.bus import publish_on_commit
from agents.events.vocabulary import (
    Corrected,
    StepCompleted,
    StepFailed,
    StepStarted,
)
from agents.models import Run
from agents.policy.corrections import Correction, StepFailure
from agents.rendering.text import preview

from . import blocks
from .locks import lock_run

ERROR_CHARACTERS = 500


@transaction.atomic
def begin_step(run: Run, *, step: int, max_steps: int) -> None:
    """Raises: LeaseLostError."""
    lock_run(run)
    Run.objects.filter(pk=run.pk).update(steps=step, max_steps=max_steps)
    publish_on_commit(
        StepStarted(
            session_id=run.session_id, run_id=run.pk, step=step, max_steps=max_steps
        )
    )


@transaction.atomic
def complete_step(run: Run, **facts: Any) -> None:
    """`facts` are the fields of the event. Raises: LeaseLostError."""
    lock_run(run)
    publish_on_commit(StepCompleted(session_id=run.session_id, run_id=run.pk, **facts))


@transaction.atomic
def record_failure(
    run: Run,
    judged: Correction | StepFailure,
    *,
    step: int,
    tool_use_id: str,
    agent_id: str,
    error: str,
) -> None:
    """Note on the failed call what was made of it, and tell it.

    Raises: LeaseLostError.
    """
    lock_run(run)
    known: dict[str, Any] = {
        "session_id": run.session_id,
        "run_id": run.pk,
        "tool_use_id": tool_use_id,
        "tool_name": judged.tool_name,
        "agent_id": agent_id,
        "error": preview(error, ERROR_CHARACTERS),
    }
    note: dict[str, Any] = {
        "kind": judged.advice.kind.value,
        "suggestion": judged.advice.suggestion,
        "alternatives": list(judged.advice.alternatives),
    }
    if isinstance(judged, StepFailure):
        note |= {"is_final": True, "failures": judged.failures}
        publish_on_commit(StepFailed(step=step, failures=judged.failures, **known))
    else:
        note |= {"cycle": judged.cycle, "max_cycles": judged.max_cycles}
        publish_on_commit(
            Corrected(
                cycle=judged.cycle,
                max_cycles=judged.max_cycles,
                failure_kind=note["kind"],
                suggestion=note["suggestion"],
                alternatives=note["alternatives"],
                **known,
            )
        )
    blocks.note_on_result(run, tool_use_id=tool_use_id, correction=note)
