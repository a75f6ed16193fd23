from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents.domain.status import derive_status, refresh_status
from agents.models import AgentSession, ApprovalRequest, Run
from agents.models.runs import RunState, StopReason
from tests import factories

AFTER = {
    "no_tool_calls": "completed",
    "complete_task": "completed",
    "error": "error",
    "context_limit": "error",
    "too_many_failures": "error",
    "cancelled": "stopped",
    "parked": "stopped",
    "timeout": "stopped",
    "budget_exceeded": "stopped",
    "max_steps": "stopped",
    "denied": "stopped",
}
DURING = {
    "queued": "queued",
    "starting": "running",
    "running": "running",
    "parked": "queued",
}


def test_the_tables_name_every_state_and_reason() -> None:
    assert set(AFTER) == set(StopReason.values)
    assert set(DURING) | {"finished"} == set(RunState.values)


@pytest.mark.parametrize(("stop_reason", "status"), AFTER.items())
def test_the_last_outcome_decides_at_rest(
    run: Run, stop_reason: str, status: str
) -> None:
    factories.end_turn(run, stop_reason=stop_reason)

    assert derive_status(run.session_id) == status
    assert AgentSession.objects.get().status == status


@pytest.mark.parametrize(("state", "status"), DURING.items())
def test_the_unfinished_run_decides_before_that(
    run: Run, state: str, status: str
) -> None:
    Run.objects.update(state=state)

    assert derive_status(run.session_id) == status


@pytest.mark.parametrize("state", DURING)
def test_a_pending_approval_decides_first(run: Run, state: str) -> None:
    factories.ask_approval(run)
    Run.objects.update(state=state)

    assert derive_status(run.session_id) == "waiting_approval"

    ApprovalRequest.objects.update(expires_at=timezone.now())
    assert derive_status(run.session_id) == DURING[state]


def test_a_session_that_never_ran_is_idle(session: AgentSession) -> None:
    session.runs.all().delete()

    assert derive_status(session.pk) == "idle"


def test_a_clock_that_was_set_back_does_not_hide_what_runs(run: Run) -> None:
    factories.end_turn(run, stop_reason="error")
    again = Run.objects.create(
        session=run.session, branch=run.branch, trigger_message=run.trigger_message
    )
    earlier: Any = run.created_at - timedelta(hours=1)
    Run.objects.filter(pk=again.pk).update(created_at=earlier)

    assert derive_status(run.session_id) == "queued"


def test_only_a_change_is_told_unless_wanted(run: Run) -> None:
    told = run.session.events.filter(type="agent:status")
    before = told.count()

    refresh_status(run.session_id)
    assert told.count() == before

    refresh_status(run.session_id, always_publish=True)
    assert told.count() == before + 1
