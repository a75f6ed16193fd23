from __future__ import annotations

from typing import Any

import pytest

from agents.domain import approvals, blocks, runs
from agents.domain.approvals import Decision, decide_approval
from agents.domain.messages import send_message
from agents.domain.runs import RunOutcome
from agents.errors import LeaseLostError
from agents.models import AgentSession, Run, User
from agents.models.messages import MessageRole
from agents.models.runs import RunKind, RunState, StopReason
from tests import factories
from tests.domain.rows import let_lease_expire, notice_of
from tests.threads import at_once

DONE = RunOutcome(stop_reason=StopReason.NO_TOOL_CALLS)
APPROVE = Decision(is_approved=True)


SETTLERS = {
    "startup": runs.reconcile_on_startup,
    "janitor": runs.reap_expired_leases,
}


@pytest.mark.parametrize("settler", SETTLERS)
def test_a_dead_run_ends_with_its_half_text_and_a_card(run: Run, settler: str) -> None:
    half = blocks.start_stream(run, role=MessageRole.ASSISTANT)
    blocks.save_stream(half.pk, "Half")
    let_lease_expire(run)

    assert SETTLERS[settler]() == 1

    stored = Run.objects.get()
    assert (stored.state, stored.stop_reason) == ("finished", "cancelled")
    assert stored.error_class == "interrupted"
    assert AgentSession.objects.get().status == "stopped"
    half.refresh_from_db()
    assert (half.text, half.is_interrupted) == ("Half", True)
    assert notice_of(run).content["kind"] == "interrupted"
    with pytest.raises(LeaseLostError):
        runs.finish_run(run, DONE)


@pytest.mark.parametrize("settler", SETTLERS)
def test_a_dead_run_with_a_question_can_still_be_answered(
    run: Run, alice: User, settler: str
) -> None:
    approval = factories.ask_approval(run)
    let_lease_expire(run)

    assert SETTLERS[settler]() == 1

    assert Run.objects.get().state == RunState.PARKED
    decide_approval(approval, alice, APPROVE)
    assert Run.objects.get().state == RunState.QUEUED


def test_a_decision_that_the_dead_never_heard_is_delivered(
    run: Run, alice: User, enqueued: list[Any]
) -> None:
    approval = factories.ask_approval(run)
    decide_approval(approval, alice, APPROVE)

    assert runs.reconcile_on_startup() == 1

    stored = Run.objects.get()
    assert (stored.state, stored.kind) == (RunState.QUEUED, RunKind.RESUME)
    assert enqueued == [run.pk]
    assert approvals.undelivered_decisions(stored) == [approval]


def test_a_dead_run_that_was_denied_and_stopped_does_not_go_on(
    run: Run, alice: User
) -> None:
    approval = factories.ask_approval(run)
    decide_approval(approval, alice, Decision(is_approved=False, stops_run=True))

    runs.reconcile_on_startup()

    stored = Run.objects.get()
    assert (stored.state, stored.stop_reason) == ("finished", "denied")


def test_a_dead_run_that_was_asked_to_stop_is_stopped(run: Run) -> None:
    approval = factories.ask_approval(run)
    runs.stop_agent(run.session)

    assert runs.reconcile_on_startup() == 1

    approval.refresh_from_db()
    assert approval.status == "cancelled"
    assert Run.objects.get().stop_reason == "cancelled"


def test_a_living_lease_is_left_alone(run: Run) -> None:
    assert runs.reap_expired_leases() == 0

    assert Run.objects.get().state == RunState.RUNNING


def test_what_waits_or_rests_is_left_alone(session: AgentSession) -> None:
    assert runs.reconcile_on_startup() == 0

    assert session.runs.get().state == RunState.QUEUED


@pytest.mark.django_db(transaction=True)
def test_of_two_janitors_one_settles() -> None:
    run = factories.start_turn(factories.make_session(factories.make_user("alice")))
    let_lease_expire(run)

    settled = at_once(runs.reap_expired_leases, runs.reap_expired_leases)

    assert (settled.count(0), settled.count(1)) == (1, 1)
    assert run.session.messages.filter(role="system").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_slow_worker_and_the_janitor_at_once_end_the_run_once() -> None:
    run = factories.start_turn(factories.make_session(factories.make_user("alice")))
    let_lease_expire(run)

    finished, settled = at_once(
        lambda: runs.finish_run(run, DONE), runs.reap_expired_leases
    )

    assert Run.objects.get().state == RunState.FINISHED
    assert (isinstance(finished, LeaseLostError), settled) in [(True, 1), (False, 0)]
    assert run.session.events.filter(type="agent:complete").count() == 1


def test_queued_messages_survive_a_crash(run: Run, alice: User) -> None:
    send_message(run.session, author=alice, text="And then?")

    runs.reconcile_on_startup()

    assert run.session.messages.queued().get().text == "And then?"
    assert AgentSession.objects.get().queue_paused
