from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from agents.domain import approvals, runs
from agents.domain.approvals import Decision, decide_approval
from agents.errors import LeaseLostError
from agents.models import AgentSession, ApprovalRequest, Run, User
from agents.models.messages import ToolOutcome
from agents.models.runs import RunKind, RunState
from tests import factories
from tests.domain.rows import notice_of, result_of
from tests.threads import at_once

APPROVE = Decision(is_approved=True)


def test_a_parked_run_keeps_its_question_open(run: Run) -> None:
    approval = factories.ask_approval(run)
    factories.call_tool(run, "toolu_2")

    assert runs.park_run(run, steps=4)

    stored = Run.objects.get()
    assert (stored.state, stored.steps) == (RunState.PARKED, 4)
    assert (stored.lease_owner, stored.lease_expires_at) == ("", None)
    assert AgentSession.objects.get().status == "waiting_approval"
    approval.refresh_from_db()
    assert approval.is_pending
    answered = run.session.messages.filter(role="tool_result")
    assert [row.tool_use_id for row in answered] == ["toolu_2"]


def test_who_parked_a_run_writes_no_more(run: Run) -> None:
    factories.ask_approval(run)
    runs.park_run(run)

    with pytest.raises(LeaseLostError):
        factories.call_tool(run, "toolu_2")


def test_a_run_without_questions_is_not_parked(run: Run) -> None:
    assert not runs.park_run(run)

    assert Run.objects.get().state == RunState.RUNNING


def test_a_run_that_was_asked_to_stop_is_not_parked(run: Run) -> None:
    factories.ask_approval(run)
    runs.stop_agent(run.session)

    assert not runs.park_run(run)


def test_a_decision_after_parking_queues_the_run_again(
    run: Run, alice: User, enqueued: list[Any]
) -> None:
    approval = factories.ask_approval(run)
    runs.park_run(run)

    decide_approval(approval, alice, APPROVE)

    stored = Run.objects.get()
    assert (stored.state, stored.kind) == (RunState.QUEUED, RunKind.RESUME)
    assert enqueued == [run.pk]
    assert AgentSession.objects.get().status == "queued"


def test_a_decision_just_before_parking_queues_the_run_again(
    run: Run, alice: User, enqueued: list[Any]
) -> None:
    approval = factories.ask_approval(run)
    decide_approval(approval, alice, APPROVE)

    assert runs.park_run(run)

    stored = Run.objects.get()
    assert (stored.state, stored.kind) == (RunState.QUEUED, RunKind.RESUME)
    assert enqueued == [run.pk]


def test_a_decision_that_was_heard_does_not_queue_the_run_again(
    run: Run, alice: User
) -> None:
    approval = factories.ask_approval(run)
    decide_approval(approval, alice, APPROVE)
    approvals.consume(approval.pk)

    assert not runs.park_run(run)


def test_a_parked_run_waits_for_its_last_approval(run: Run, alice: User) -> None:
    first = factories.ask_approval(run, "toolu_1")
    second = factories.ask_approval(run, "toolu_2")
    runs.park_run(run)

    decide_approval(first, alice, APPROVE)
    assert Run.objects.get().state == RunState.PARKED
    assert AgentSession.objects.get().status == "waiting_approval"

    decide_approval(second, alice, Decision(is_approved=False, message="Not this one"))
    assert Run.objects.get().state == RunState.QUEUED
    assert [item.pk for item in approvals.undelivered_decisions(run)] == [
        first.pk,
        second.pk,
    ]
    denied = result_of(run, "toolu_2")
    assert (denied.outcome, denied.text) == (ToolOutcome.DENIED, "Not this one")


def test_deny_and_stop_ends_a_parked_run(
    run: Run, alice: User, enqueued: list[Any]
) -> None:
    approval = factories.ask_approval(run)
    runs.park_run(run)

    decide_approval(approval, alice, Decision(is_approved=False, stops_run=True))

    stored = Run.objects.get()
    assert (stored.state, stored.stop_reason) == ("finished", "denied")
    assert enqueued == []
    assert result_of(run).outcome == ToolOutcome.DENIED
    assert notice_of(run).text == runs.DENIED_AND_STOPPED
    assert AgentSession.objects.get().status == "stopped"


@pytest.mark.parametrize("end", [approvals.cancel_approval, "expire"])
def test_a_parked_run_that_nobody_answered_ends(run: Run, end: Any) -> None:
    approval = factories.ask_approval(run)
    runs.park_run(run)

    if end == "expire":
        ApprovalRequest.objects.update(expires_at=timezone.now())
        assert approvals.expire_approvals() == 1
    else:
        assert end(approval)

    stored = Run.objects.get()
    assert (stored.state, stored.stop_reason) == ("finished", "cancelled")
    assert notice_of(run).text == runs.UNANSWERED
    assert AgentSession.objects.get().status == "stopped"


def test_a_parked_run_hears_that_its_request_timed_out(run: Run) -> None:
    approval = factories.ask_approval(run)
    runs.park_run(run)

    assert approvals.deny_on_timeout(approval)

    assert Run.objects.get().state == RunState.QUEUED
    assert result_of(run).text == "Approval timed out"


def test_only_parked_runs_are_resumed(run: Run) -> None:
    assert not runs.resume_if_decided(run.pk)
    assert not runs.resume_if_decided(uuid4())
    assert Run.objects.get().state == RunState.RUNNING


@pytest.mark.django_db(transaction=True)
def test_a_decision_and_the_end_of_the_run_at_once_lose_nothing() -> None:
    alice = factories.make_user("alice")
    run = factories.start_turn(factories.make_session(alice))
    approval = factories.ask_approval(run)

    results = at_once(
        lambda: decide_approval(approval, alice, APPROVE),
        lambda: runs.park_run(run),
    )

    assert not [result for result in results if isinstance(result, Exception)]
    stored = Run.objects.get()
    assert (stored.state, stored.kind) == (RunState.QUEUED, RunKind.RESUME)


@pytest.mark.django_db(transaction=True)
def test_two_last_decisions_at_once_resume_the_run_once(enqueued: list[Any]) -> None:
    alice = factories.make_user("alice")
    run = factories.start_turn(factories.make_session(alice))
    asked = [factories.ask_approval(run, f"toolu_{number}") for number in (1, 2)]
    runs.park_run(run)
    enqueued.clear()

    results = at_once(
        *[lambda item=item: decide_approval(item, alice, APPROVE) for item in asked]
    )

    assert not [result for result in results if isinstance(result, Exception)]
    assert Run.objects.get().state == RunState.QUEUED
    assert enqueued == [run.pk]
