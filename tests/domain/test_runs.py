from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents.domain import blocks, notices, runs
from agents.domain.runs import RunOutcome
from agents.errors import AgentsError, LeaseLostError, RunActiveError
from agents.models import AgentSession, Run
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.runs import RunKind, RunState, StopReason
from tests import factories
from tests.domain.rows import let_lease_expire, lose_lease, result_of, rows
from tests.threads import at_once

DONE = RunOutcome(stop_reason=StopReason.NO_TOOL_CALLS)


# One unfinished run


def test_a_second_run_is_refused_while_one_is_unfinished(run: Run) -> None:
    with pytest.raises(RunActiveError):
        runs.start_run(run.trigger_message, kind=RunKind.RETRY)


def test_a_clock_that_is_set_back_makes_no_turn_end_before_it_began(run: Run) -> None:
    Run.objects.update(started_at=timezone.now() + timedelta(hours=1))

    runs.finish_run(run, DONE)

    run.refresh_from_db()
    assert run.duration_ms == 0
    ended = run.session.events.get(type="agent:complete")
    assert ended.data["duration_ms"] == 0


def test_the_database_itself_allows_one_unfinished_run(run: Run) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.create(
            session=run.session,
            branch=run.branch,
            trigger_message=run.trigger_message,
            state=RunState.PARKED,
        )


@pytest.mark.django_db(transaction=True)
def test_of_two_tries_at_once_one_runs() -> None:
    session = factories.make_session(factories.make_user("alice"))
    factories.end_turn(factories.start_turn(session), stop_reason="cancelled")

    results = at_once(*[lambda: runs.retry_last_run(session)] * 2)

    assert {type(result) for result in results} == {Run, RunActiveError}
    assert session.runs.unfinished().count() == 1


# Claiming


def test_a_claim_gives_a_lease_and_a_new_fencing_number(session: AgentSession) -> None:
    waiting = session.runs.get()

    claimed = runs.claim_run(waiting.pk, "worker")

    assert claimed is not None
    assert claimed.state == RunState.STARTING
    assert claimed.fencing == waiting.fencing + 1
    assert claimed.lease_owner == "worker"
    assert claimed.lease_expires_at is not None
    assert claimed.lease_expires_at > timezone.now()
    assert AgentSession.objects.get().status == "running"


def test_a_run_that_does_not_wait_can_not_be_claimed(run: Run) -> None:
    assert runs.claim_run(run.pk, "late") is None
    assert runs.claim_run(uuid4(), "lost") is None


@pytest.mark.django_db(transaction=True)
def test_of_two_workers_one_claims() -> None:
    session = factories.make_session(factories.make_user("alice"))
    waiting = session.runs.get()

    results = at_once(
        lambda: runs.claim_run(waiting.pk, "one"),
        lambda: runs.claim_run(waiting.pk, "two"),
    )

    (winner,) = [run for run in results if isinstance(run, Run)]
    assert [run for run in results if run is not winner] == [None]
    assert session.runs.get().lease_owner == winner.lease_owner
    assert session.runs.get().fencing == waiting.fencing + 1


@pytest.mark.django_db(transaction=True)
def test_a_stop_and_a_claim_at_once_leave_one_truth() -> None:
    session = factories.make_session(factories.make_user("alice"))
    waiting = session.runs.get()

    claimed, was_stopped = at_once(
        lambda: runs.claim_run(waiting.pk, "worker"),
        lambda: runs.stop_agent(session),
    )

    stored = session.runs.get()
    assert was_stopped is True
    if claimed is None:
        assert (stored.state, stored.stop_reason) == ("finished", "cancelled")
    else:
        assert stored.state == "starting"
        assert stored.stop_requested_at is not None


# Fencing


def test_a_heartbeat_moves_the_lease_on(run: Run) -> None:
    let_lease_expire(run)

    assert runs.extend_lease(run) is None

    stored = Run.objects.get()
    assert stored.lease_expires_at is not None
    assert stored.lease_expires_at > timezone.now()


def test_a_heartbeat_hears_of_a_stop(run: Run) -> None:
    runs.stop_agent(run.session)

    assert runs.extend_lease(run) == Run.objects.get().stop_requested_at is not None


def _write_denial(run: Run) -> None:
    blocks.record_denial(
        run, tool_use_id="toolu_1", tool_name="Bash", tool_input={}, reason="No"
    )


def _write_retry(run: Run) -> None:
    notices.record_retry(
        run,
        None,
        attempt=1,
        max_retries=4,
        delay_ms=1000,
        error_status=529,
        error="overloaded",
    )


WRITERS = {
    "mark_running": lambda run: runs.mark_running(run),
    "extend_lease": lambda run: runs.extend_lease(run),
    "finish_run": lambda run: runs.finish_run(run, DONE),
    "park_run": lambda run: runs.park_run(run),
    "start_stream": lambda run: blocks.start_stream(run, role=MessageRole.THINKING),
    "start_tool_call": lambda run: blocks.start_tool_call(
        run, tool_use_id="toolu_9", tool_name="Bash"
    ),
    "record_tool_call": lambda run: factories.call_tool(run, "toolu_9"),
    "record_tool_result": lambda run: factories.return_result(run, "toolu_1"),
    "record_denial": _write_denial,
    "add_message": lambda run: blocks.add_message(
        run.session_id,
        branch_id=run.branch_id,
        role=MessageRole.ASSISTANT,
        text="Late",
        run=run,
    ),
    "add_notice": lambda run: notices.add_notice(run, "stalled", "Late"),
    "record_retry": _write_retry,
    "open_approval": lambda run: factories.ask_approval(run, "toolu_9"),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("has_ended", [False, True])
def test_a_worker_that_lost_its_run_changes_nothing(
    run: Run, writer: str, has_ended: bool
) -> None:
    factories.call_tool(run)
    if has_ended:
        factories.end_turn(run)
    else:
        lose_lease(run)
    before = rows(run.session)

    with pytest.raises(LeaseLostError), transaction.atomic():
        WRITERS[writer](run)

    assert rows(run.session) == before


def test_text_of_a_block_that_has_ended_is_not_touched(run: Run) -> None:
    block = blocks.start_stream(run, role=MessageRole.ASSISTANT)
    blocks.save_stream(block.pk, "Half")
    factories.end_turn(run, stop_reason="cancelled")

    blocks.save_stream(block.pk, "Half a sentence")
    blocks.finish_stream(block.pk, text="A whole sentence")

    block.refresh_from_db()
    assert (block.text, block.is_interrupted) == ("Half", True)


# Ending


def test_the_end_is_stored_and_told(run: Run) -> None:
    outcome = RunOutcome(
        stop_reason=StopReason.ERROR,
        error_class="upstream",
        error_text="Bad\x00 \ud800gateway",
        steps=3,
        model_actual="claude-x",
        sdk_resume_uuid=uuid4(),
    )

    runs.finish_run(run, outcome)

    stored = Run.objects.select_related("branch", "session").get()
    assert (stored.state, stored.stop_reason) == ("finished", "error")
    assert (stored.success, stored.steps) == (False, 3)
    assert stored.error_text == "Bad\ufffd \ufffdgateway"
    assert stored.model_actual == "claude-x"
    assert (stored.lease_owner, stored.lease_expires_at) == ("", None)
    assert stored.branch.sdk_resume_uuid == outcome.sdk_resume_uuid
    assert stored.session.status == "error"
    told = list(stored.session.events.values_list("type", flat=True))
    assert told[-3:] == ["agent:error", "agent:complete", "agent:status"]
    complete = stored.session.events.get(type="agent:complete").data
    assert complete["stop_reason"] == "error"
    assert complete["success"] is False


def test_an_unknown_actual_model_keeps_what_was_known(run: Run) -> None:
    runs.finish_run(run, DONE)

    stored = Run.objects.get()
    assert stored.model_actual == "claude-test"
    assert stored.success


def test_the_end_closes_what_is_open(run: Run) -> None:
    half = blocks.start_stream(run, role=MessageRole.ASSISTANT)
    blocks.save_stream(half.pk, "**Half** a")
    blocks.start_tool_call(run, tool_use_id="toolu_2", tool_name="Read")
    factories.call_tool(run, "toolu_1")
    factories.call_tool(run, "toolu_3")
    factories.return_result(run, "toolu_3")

    factories.end_turn(run, stop_reason="cancelled")

    half.refresh_from_db()
    assert (half.text, half.is_streaming, half.is_interrupted) == (
        "**Half** a",
        False,
        True,
    )
    assert "<strong>Half</strong>" in half.rendered_html
    assert not run.session.messages.filter(is_streaming=True).exists()
    assert result_of(run, "toolu_1").outcome == ToolOutcome.CANCELLED
    assert result_of(run, "toolu_2").outcome == ToolOutcome.CANCELLED
    assert result_of(run, "toolu_3").outcome == ToolOutcome.OK


def test_the_end_withdraws_what_was_asked(run: Run) -> None:
    approval = factories.ask_approval(run)

    factories.end_turn(run, stop_reason="cancelled")

    approval.refresh_from_db()
    assert approval.status == "cancelled"
    assert AgentSession.objects.get().status == "stopped"


# Stopping


def test_stopping_a_queued_run_ends_it(session: AgentSession) -> None:
    assert runs.stop_agent(session)

    assert session.runs.get().stop_reason == "cancelled"
    session.refresh_from_db()
    assert session.status == "stopped"


def test_stopping_a_live_run_asks_its_worker(run: Run) -> None:
    assert runs.stop_agent(run.session)

    stored = Run.objects.get()
    assert stored.state == RunState.RUNNING
    assert stored.stop_requested_at is not None


def test_stopping_a_parked_run_ends_it(run: Run) -> None:
    approval = factories.ask_approval(run)
    runs.park_run(run)

    assert runs.stop_agent(run.session)

    approval.refresh_from_db()
    assert approval.status == "cancelled"
    assert Run.objects.get().stop_reason == "cancelled"
    assert result_of(run).outcome == ToolOutcome.CANCELLED


def test_stopping_a_resting_agent_does_nothing(run: Run) -> None:
    factories.end_turn(run)
    before = rows(run.session)

    assert not runs.stop_agent(run.session)

    assert rows(run.session) == before


# Again and on


def test_a_retry_runs_the_same_message_again(run: Run) -> None:
    factories.end_turn(run, stop_reason="error", error_class="overloaded")

    again = runs.retry_last_run(run.session)

    assert (again.kind, again.trigger_message) == (RunKind.RETRY, run.trigger_message)
    assert AgentSession.objects.get().status == "queued"


def test_there_is_nothing_to_try_again_at_first(session: AgentSession) -> None:
    session.runs.all().delete()

    with pytest.raises(AgentsError, match="nothing to try again"):
        runs.retry_last_run(session)


def test_going_on_adds_a_hidden_message(run: Run) -> None:
    factories.end_turn(run, stop_reason="cancelled")

    going_on = runs.continue_session(run.session)

    message = going_on.trigger_message
    assert (message.text, message.hidden) == (runs.CONTINUE_PROMPT, True)
    assert AgentSession.objects.get().last_preview == "Count to three"


def test_going_on_is_refused_while_the_agent_works(run: Run) -> None:
    with pytest.raises(RunActiveError):
        runs.continue_session(run.session)

    assert not run.session.messages.filter(hidden=True).exists()
