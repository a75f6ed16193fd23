"""Whatever people, workers and crashes do, and in whatever order: the rows agree."""

from __future__ import annotations

from itertools import count

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agents.domain import approvals, blocks, messages, runs
from agents.domain.approvals import Decision, decide_approval
from agents.domain.messages import send_message
from agents.domain.runs import RunOutcome
from agents.domain.status import derive_status
from agents.errors import AlreadyDecidedError, LeaseLostError, RunActiveError
from agents.models import AgentSession, ApprovalRequest, Message, Run
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.runs import LIVE_STATES, RunState, StopReason
from tests import factories

NUMBERS = count(1)
REASONS = st.sampled_from(list(StopReason))
DECISIONS = st.sampled_from(
    [
        Decision(is_approved=True),
        Decision(is_approved=False, message="No"),
        Decision(is_approved=False, stops_run=True),
    ]
)


class OneSession(RuleBasedStateMachine):
    """A person, a worker, and workers that think they are still alive."""

    @initialize()
    def launch(self) -> None:
        self.alice = factories.make_user(f"alice-{next(NUMBERS)}")
        self.session_id = factories.make_session(self.alice).pk
        self.worker: Run | None = None
        self.zombies: list[Run] = []

    def teardown(self) -> None:
        if hasattr(self, "session_id"):
            self.session.delete()

    @property
    def session(self) -> AgentSession:
        return AgentSession.objects.get(pk=self.session_id)

    def pending(self) -> list[ApprovalRequest]:
        return list(self.session.approvals.pending())

    def unfinished(self) -> Run | None:
        return self.session.runs.unfinished().first()

    def is_at_work(self) -> bool:
        return self.worker is not None

    def leave(self) -> None:
        """The worker's process is gone, whatever it still believes."""
        if self.worker is not None:
            self.zombies.append(self.worker)
        self.worker = None

    # People

    @rule()
    def send(self) -> None:
        send_message(self.session, author=self.alice, text=f"Message {next(NUMBERS)}")

    @precondition(lambda self: self.unfinished())
    @rule()
    def stop(self) -> None:
        runs.stop_agent(self.session)

    @precondition(lambda self: not self.unfinished())
    @rule(is_retry=st.booleans())
    def go_on(self, is_retry: bool) -> None:
        begin = runs.retry_last_run if is_retry else runs.continue_session
        begin(self.session)
        with pytest.raises(RunActiveError), transaction.atomic():
            begin(self.session)

    @precondition(lambda self: self.session.messages.queued().exists())
    @rule()
    def take_back(self) -> None:
        waiting = self.session.messages.queued().last()
        assert waiting is not None
        assert messages.remove_queued_message(waiting)

    @precondition(lambda self: self.pending())
    @rule(decision=DECISIONS, pick=st.integers(0, 3))
    def decide(self, decision: Decision, pick: int) -> None:
        pending = self.pending()
        approval = pending[pick % len(pending)]
        decide_approval(approval, self.alice, decision)
        with pytest.raises(AlreadyDecidedError), transaction.atomic():
            decide_approval(approval, self.alice, decision)

    # The worker

    @precondition(lambda self: self.session.status == "queued")
    @rule()
    def claim(self) -> None:
        waiting = self.unfinished()
        assert waiting is not None
        self.worker = runs.claim_run(waiting.pk, "worker")
        assert self.worker is not None
        assert runs.claim_run(waiting.pk, "second") is None

    @precondition(lambda self: self.is_at_work())
    @rule(is_cut=st.booleans())
    def speak(self, is_cut: bool) -> None:
        assert self.worker is not None
        block = blocks.start_stream(self.worker, role=MessageRole.ASSISTANT)
        blocks.save_stream(block.pk, "Some words")
        if not is_cut:
            blocks.finish_stream(block.pk, text="Some words.")

    @precondition(lambda self: self.is_at_work())
    @rule(has_result=st.booleans(), is_streamed=st.booleans())
    def call(self, has_result: bool, is_streamed: bool) -> None:
        assert self.worker is not None
        tool_use_id = f"toolu_{next(NUMBERS)}"
        if is_streamed:
            blocks.start_tool_call(
                self.worker, tool_use_id=tool_use_id, tool_name="Bash"
            )
        else:
            factories.call_tool(self.worker, tool_use_id)
        if has_result:
            factories.return_result(self.worker, tool_use_id)

    @precondition(lambda self: self.is_at_work())
    @rule()
    def ask(self) -> None:
        assert self.worker is not None
        factories.ask_approval(self.worker, f"toolu_{next(NUMBERS)}")

    @precondition(
        lambda self: self.is_at_work() and self.worker.approvals.unheard().exists()
    )
    @rule()
    def hear(self) -> None:
        """The waiting gate takes what was decided, once."""
        assert self.worker is not None
        for approval in approvals.undelivered_decisions(self.worker):
            assert approvals.consume(approval.pk)
            assert not approvals.consume(approval.pk)

    @precondition(lambda self: self.is_at_work() and self.pending())
    @rule()
    def withdraw(self) -> None:
        for approval in self.pending():
            assert approvals.cancel_approval(approval)

    @precondition(lambda self: self.is_at_work())
    @rule(stop_reason=REASONS)
    def finish(self, stop_reason: StopReason) -> None:
        assert self.worker is not None
        runs.finish_run(self.worker, RunOutcome(stop_reason=stop_reason))
        self.leave()

    # The world

    @precondition(lambda self: self.is_at_work())
    @rule()
    def shut_down(self) -> None:
        assert self.worker is not None
        if not runs.park_run(self.worker):
            outcome = RunOutcome(stop_reason=StopReason.CANCELLED)
            runs.finish_run(self.worker, outcome)
        self.leave()

    @precondition(lambda self: self.is_at_work())
    @rule()
    def crash(self) -> None:
        runs.reconcile_on_startup()
        self.leave()

    @precondition(lambda self: self.pending())
    @rule()
    def time_out(self) -> None:
        for approval in self.pending():
            assert approvals.deny_on_timeout(approval)

    @precondition(lambda self: self.pending())
    @rule()
    def expire(self) -> None:
        pending = self.pending()
        ids = [approval.pk for approval in pending]
        ApprovalRequest.objects.filter(pk__in=ids).update(expires_at=timezone.now())
        assert approvals.expire_approvals() == len(pending)

    @precondition(lambda self: self.zombies)
    @rule()
    def rise(self) -> None:
        """Who lost the run can't write to it any more."""
        zombie = self.zombies[-1]
        for write in (
            lambda: runs.finish_run(zombie, RunOutcome(stop_reason=StopReason.ERROR)),
            lambda: runs.extend_lease(zombie),
            lambda: blocks.start_stream(zombie, role=MessageRole.THINKING),
            lambda: factories.call_tool(zombie, "toolu_late"),
            lambda: factories.ask_approval(zombie, "toolu_late"),
        ):
            with pytest.raises(LeaseLostError), transaction.atomic():
                write()

    # What always holds

    @invariant()
    def one_run_at_most_is_unfinished(self) -> None:
        assert self.session.runs.unfinished().count() <= 1

    @invariant()
    def the_status_is_what_is_derived(self) -> None:
        assert self.session.status == derive_status(self.session_id)

    @invariant()
    def a_parked_run_has_somebody_to_wait_for(self) -> None:
        for run in self.session.runs.filter(state=RunState.PARKED):
            assert run.approvals.pending().exists()

    @invariant()
    def a_lease_belongs_to_a_living_run(self) -> None:
        for run in self.session.runs.all():
            assert (run.lease_expires_at is not None) is (run.state in LIVE_STATES)

    @invariant()
    def a_finished_run_is_over(self) -> None:
        finished = self.session.runs.filter(state=RunState.FINISHED)
        for run in finished:
            assert run.stop_reason
            assert run.finished_at is not None
        asked = ApprovalRequest.objects.filter(run__in=finished, status="pending")
        assert not asked.exists()
        said = Message.objects.filter(run__in=finished)
        assert not said.filter(is_streaming=True).exists()
        calls = said.filter(role=MessageRole.TOOL_CALL)
        results = said.filter(role=MessageRole.TOOL_RESULT)
        assert sorted(calls.values_list("tool_use_id", flat=True)) == sorted(
            results.values_list("tool_use_id", flat=True)
        )
        assert set(results.values_list("outcome", flat=True)) <= set(ToolOutcome)

    @invariant()
    def queued_messages_are_heard_in_their_order(self) -> None:
        queued = self.session.messages.exclude(queued_at=None)
        heard = [
            message.queued_at
            for message in queued.exclude(delivered_at=None).order_by("seq")
        ]
        waiting = [message.queued_at for message in self.session.messages.queued()]
        assert heard + waiting == sorted(heard + waiting)  # type: ignore[type-var]

    @invariant()
    def nothing_waits_unnoticed(self) -> None:
        """What is queued is behind a run, or the queue says that it is paused."""
        session = self.session
        if session.messages.queued().exists():
            assert session.runs.unfinished().exists() or session.queue_paused

    @invariant()
    def numbers_are_given_once_and_without_gaps(self) -> None:
        session = self.session
        events = list(session.events.values_list("seq", flat=True))
        assert events == list(range(1, session.last_seq + 1))
        places = list(session.messages.values_list("seq", flat=True))
        assert len(places) == len(set(places))
        assert max(places) <= session.last_message_seq

    @invariant()
    def the_count_is_that_of_the_finished_messages(self) -> None:
        session = self.session
        finished = session.messages.filter(is_streaming=False).count()
        assert session.message_count == finished


@pytest.mark.django_db
def test_the_rows_agree_after_any_history() -> None:
    run_state_machine_as_test(
        OneSession,
        settings=settings(
            max_examples=25,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
