"""Runs: one turn of the engine from queued to finished.

A run belongs to the worker whose lease is newest. Each write by a worker names its
fencing number, so that one that lost the lease changes nothing any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone

from agents.conf import conf
from agents.errors import (
    AgentsError,
    LeaseLostError,
    RunActiveError,
    SessionGoneError,
)
from agents.events.bus import control_group, publish_on_commit, ring_on_commit
from agents.events.vocabulary import QueueUpdated, RunCompleted, RunFailed
from agents.models import AgentSession, ApprovalRequest, Message, Run
from agents.models.approvals import ApprovalKind, ApprovalStatus
from agents.models.messages import MessageRole
from agents.models.runs import (
    LIVE_STATES,
    RunKind,
    RunQuerySet,
    RunState,
    StopReason,
)
from agents.models.sessions import ACTIVE_STATUSES
from agents.rendering.text import clean_text

from . import analytics, blocks, notices, settling
from .dispatching import dispatcher
from .endings import WHOLE, is_success
from .locks import lock_open_session, lock_session
from .status import refresh_status
from .transcripts import has_entry

CONTINUE_PROMPT = "Please continue where you left off."
INTERRUPTED = "The server stopped while the agent was at work."
UNANSWERED = "Stopped, because nobody decided about the call in time."
NO_MORE_BUDGET = "Stopped: the budget is used up and was not raised."
DENIED_AND_STOPPED = "Stopped, because the call was denied."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a turn ended, as `finish_run` stores it."""

    stop_reason: StopReason
    error_class: str = ""
    error_text: str = ""
    steps: int = 0
    model_actual: str = ""
    sdk_resume_uuid: UUID | None = None
    has_unresolved_failure: bool = False
    """Whether a step failed and no call succeeded after it."""

    @property
    def is_whole(self) -> bool:
        """Whether the turn went to its own end, well or badly."""
        return self.stop_reason in WHOLE

    @property
    def success(self) -> bool:
        return is_success(
            self.stop_reason, has_unresolved_failure=self.has_unresolved_failure
        )


@transaction.atomic
def start_run(message: Message, *, kind: RunKind) -> Run:
    """Queue a turn for `message`; the dispatcher starts it after the commit.

    Raises: RunActiveError when the session already has an unfinished run;
        SessionClosedError.
    """
    if _is_busy(lock_open_session(message.session_id)):
        raise RunActiveError("The agent is already at work in this session.")
    run = Run.objects.create(
        session_id=message.session_id,
        branch_id=message.branch_id,
        trigger_message=message,
        kind=kind,
    )
    AgentSession.objects.filter(pk=run.session_id).update(is_resumed=False)
    refresh_status(run.session_id)
    dispatcher().enqueue(run.pk)
    return run


def _is_busy(session: AgentSession) -> bool:
    return session.runs.unfinished().exists()


def claim_run(run_id: UUID, worker: str) -> Run | None:
    """Take the run for `worker`, if it still waits for one.

    Returns: the run with its new fencing number, or None if there is nothing to do.
    """
    waiting = Run.objects.filter(pk=run_id, state=RunState.QUEUED)
    session_id = waiting.values_list("session_id", flat=True).first()
    if session_id is None:
        return None
    with transaction.atomic():
        try:
            lock_session(session_id)
        except SessionGoneError:
            return None
        now = timezone.now()
        won = waiting.update(
            state=RunState.STARTING,
            lease_owner=worker,
            lease_expires_at=now + timedelta(seconds=conf().lease_seconds),
            heartbeat_at=now,
            started_at=now,
            fencing=F("fencing") + 1,
        )
        if not won:
            return None
        refresh_status(session_id)
        claimed = Run.objects.select_related("session", "branch", "trigger_message")
        return claimed.get(pk=run_id)


def mark_running(run: Run, **facts: Any) -> None:
    """The engine is connected; `facts` are columns known by now.

    Raises: LeaseLostError.
    """
    if not _held(run).update(state=RunState.RUNNING, **facts):
        raise LeaseLostError("Another worker took over this run.")


def extend_lease(run: Run, *, worked_ms: int = 0) -> datetime | None:
    """Heartbeat. `worked_ms` is how long the turn was at work until now.

    Returns: when a stop was requested, if one was.

    Raises: LeaseLostError.
    """
    now = timezone.now()
    extended = _held(run).update(
        heartbeat_at=now,
        lease_expires_at=now + timedelta(seconds=conf().lease_seconds),
        worked_ms=Greatest("worked_ms", worked_ms),
    )
    if not extended:
        raise LeaseLostError("Another worker took over this run.")
    row = Run.objects.filter(pk=run.pk).values_list("stop_requested_at", flat=True)
    return row.first()


def check_is_there(run: Run) -> None:
    """Raises: SessionGoneError when its session was deleted, and the run with it."""
    if not Run.objects.filter(pk=run.pk).exists():
        raise SessionGoneError


def is_stop_requested(run: Run) -> bool:
    """Whether a person stopped it, or deleted its session."""
    return not Run.objects.filter(pk=run.pk, stop_requested_at=None).exists()


def _held(run: Run) -> RunQuerySet:
    return Run.objects.live().still_of(run)


@transaction.atomic
def finish_run(run: Run, outcome: RunOutcome) -> None:
    """End the turn: close what is open, settle the status, deliver what is queued.

    Raises: LeaseLostError when another worker owns the run by now.
    """
    lock_session(run.session_id)
    if not _held(run).exists():
        raise LeaseLostError("Another worker took over this run.")
    _finish(run, outcome)


def _finish(run: Run, outcome: RunOutcome) -> None:
    blocks.close_open_blocks(run)
    settling.cancel_pending(run)
    _tell_how_compaction_ended(run)
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(
        state=RunState.FINISHED,
        stop_reason=outcome.stop_reason,
        success=outcome.success,
        error_class=outcome.error_class,
        error_text=clean_text(outcome.error_text),
        steps=outcome.steps,
        **({"model_actual": outcome.model_actual} if outcome.model_actual else {}),
        finished_at=now,
        lease_owner="",
        lease_expires_at=None,
    )
    if outcome.sdk_resume_uuid is not None:
        run.branch.sdk_resume_uuid = outcome.sdk_resume_uuid
        run.branch.save(update_fields=["sdk_resume_uuid"])
    run.refresh_from_db()
    _publish_end(run)
    if not outcome.success or run.stop_requested_at:
        _pause_queue(run.session_id)
    analytics.turn_completed(run)
    refresh_status(run.session_id, always_publish=True)
    deliver_next_message(run.session_id)


def _tell_how_compaction_ended(run: Run) -> None:
    """A summary that came is told of already; the row must not wait for one now."""
    if run.kind != RunKind.COMPACT:
        return
    waits = Message.objects.filter(
        pk=run.trigger_message_id, content__kind="compacting"
    )
    if waits.exists():
        notices.update_notice(
            run.trigger_message_id, notices.NOT_COMPACTED, kind="not_compacted"
        )


def _publish_end(run: Run) -> None:
    if run.error_class:
        publish_on_commit(
            RunFailed(
                session_id=run.session_id,
                run_id=run.pk,
                error_class=run.error_class,
                message=run.error_text,
            )
        )
    publish_on_commit(
        RunCompleted(
            session_id=run.session_id,
            run_id=run.pk,
            stop_reason=run.stop_reason,
            success=bool(run.success),
            steps=run.steps,
            cost_usd_micros=run.cost_usd_micros,
            duration_ms=run.duration_ms or 0,
        )
    )


def _pause_queue(session_id: UUID) -> None:
    """After Stop or an error what was typed waits for a person's word."""
    session = AgentSession.objects.get(pk=session_id)
    if session.messages.queued().filter(is_urgent=False).exists():
        AgentSession.objects.filter(pk=session_id).update(queue_paused=True)
        publish_queue(session_id)


@transaction.atomic
def park_run(
    run: Run, *, steps: int = 0, worked_ms: int = 0, deferred_tool_use_id: str = ""
) -> bool:
    """Let the run wait without a process for what people decide about its calls.

    A decision that came in and was not heard counts: then it goes on at once.
    `deferred_tool_use_id` names the call that the CLI itself takes up again.

    Returns: False when there is nothing to wait for, or a person asked the run to
        stop (then the caller finishes it).
    Raises: LeaseLostError.
    """
    lock_session(run.session_id)
    if not _held(run).exists():
        raise LeaseLostError("Another worker took over this run.")
    Run.objects.filter(pk=run.pk).update(worked_ms=Greatest("worked_ms", worked_ms))
    return _park_if_waiting(run, steps, deferred_tool_use_id)


def _park_if_waiting(run: Run, steps: int, deferred_tool_use_id: str = "") -> bool:
    pending = list(run.approvals.pending().values_list("tool_use_id", flat=True))
    if is_stop_requested(run) or not (pending or run.approvals.unheard().exists()):
        return False
    blocks.close_open_blocks(run, keep=[*pending, deferred_tool_use_id])
    Run.objects.filter(pk=run.pk).update(
        state=RunState.PARKED,
        steps=steps,
        deferred_tool_use_id=deferred_tool_use_id,
        fencing=F("fencing") + 1,  # whoever held it writes no more
        lease_owner="",
        lease_expires_at=None,
    )
    refresh_status(run.session_id, always_publish=True)
    resume_if_decided(run.pk)
    return True


@transaction.atomic
def resume_if_decided(run_id: UUID) -> bool:
    """Move a parked run on once none of its approvals is pending.

    Both the decision and the end of a run call this, so whoever is second does it.
    The run is queued again to hear the decisions; it ends here when one of them was
    "deny and stop", or when its requests ended without anybody deciding.

    Returns: whether the run was queued.
    """
    known = Run.objects.select_related("branch", "trigger_message")
    run = known.filter(pk=run_id).first()
    if run is None:
        return False
    lock_session(run.session_id)
    run.refresh_from_db(fields=["state", "fencing"])
    if run.state != RunState.PARKED or run.approvals.pending().exists():
        return False
    decided = list(run.approvals.unheard())
    for approval in decided:
        is_denied = approval.status == ApprovalStatus.DENIED
        if is_denied and approval.kind != ApprovalKind.BUDGET:
            settling.write_denial(run, approval)
    if not decided:
        _end_parked(run, StopReason.CANCELLED, UNANSWERED)
    elif any(_is_denied_budget(approval) for approval in decided):
        _end_parked(run, StopReason.BUDGET_EXCEEDED, NO_MORE_BUDGET)
    elif any(approval.stops_run for approval in decided):
        _end_parked(run, StopReason.DENIED, DENIED_AND_STOPPED)
    else:
        _requeue(run, decided)
        return True
    return False


def _has_begun(run: Run) -> bool:
    """Whether the model has heard the run's prompt."""
    prompt_id = run.trigger_message.sdk_uuid
    session_id = run.branch.sdk_session_id
    return prompt_id is not None and has_entry(session_id, prompt_id)


def _is_denied_budget(approval: ApprovalRequest) -> bool:
    is_denied = approval.status == ApprovalStatus.DENIED
    return is_denied and approval.kind == ApprovalKind.BUDGET


def _end_parked(run: Run, stop_reason: StopReason, sentence: str) -> None:
    notices.add_notice(run, "stopped", sentence, stop_reason=stop_reason)
    _finish(run, RunOutcome(stop_reason=stop_reason, steps=run.steps))


def _requeue(run: Run, decided: list[ApprovalRequest]) -> None:
    """What was put aside before anything was said begins as if it were new."""
    is_funded = all(each.kind == ApprovalKind.BUDGET for each in decided)
    begins = is_funded and not _has_begun(run)
    if begins:
        run.approvals.unheard().update(consumed_at=timezone.now())
    kind = run.kind if begins else RunKind.RESUME
    Run.objects.filter(pk=run.pk).update(state=RunState.QUEUED, kind=kind)
    refresh_status(run.session_id)
    dispatcher().enqueue(run.pk)


@transaction.atomic
def stop_agent(session: AgentSession) -> bool:
    """Ask the session's unfinished run to stop, after those of its children.

    A run that no worker owns ends here; a live one is told by the control group and,
    should that doorbell get lost, by its next heartbeat.

    Returns: False when nothing was running.
    """
    lock_session(session.pk)
    at_work = session.children.filter(status__in=ACTIVE_STATUSES, host_session=None)
    for child in at_work:
        stop_agent(child)
    run = session.runs.unfinished().select_related("branch").first()
    if run is None:
        return False
    Run.objects.filter(pk=run.pk).update(stop_requested_at=timezone.now())
    if run.state in LIVE_STATES:
        ring_on_commit(control_group(session.pk), {"type": "control.stop"})
    else:
        _finish(run, RunOutcome(stop_reason=StopReason.CANCELLED, steps=run.steps))
    return True


@transaction.atomic
def retry_last_run(session: AgentSession) -> Run:
    """Run the last turn's message again; the model sees the prompt once.

    Raises: RunActiveError; AgentsError when there is nothing to try again.
    """
    lock_session(session.pk)
    last = session.runs.order_by("-created_at").select_related("trigger_message")
    run = last.first()
    if run is None:
        raise AgentsError("There is nothing to try again yet.")
    if run.kind != RunKind.COMPACT:
        return start_run(run.trigger_message, kind=RunKind.RETRY)
    row = run.trigger_message
    notices.update_notice(row.pk, notices.COMPACTING, kind="compacting")
    return start_run(row, kind=RunKind.COMPACT)


@transaction.atomic
def continue_session(session: AgentSession) -> Run:
    """Go on after a stop or a crash, from what the transcript holds.

    Raises: RunActiveError; SessionClosedError.
    """
    session = lock_open_session(session.pk)
    assert session.active_branch_id is not None, "made with its main branch"
    message = blocks.add_message(
        session.pk,
        branch_id=session.active_branch_id,
        role=MessageRole.USER,
        text=CONTINUE_PROMPT,
        hidden=True,
    )
    return start_run(message, kind=RunKind.PROMPT)


def reconcile_on_startup() -> int:
    """Settle every run that a dead server left behind; nobody else may be alive.

    Returns: how many runs were settled.
    """
    return _settle_dead(Run.objects.live())


def settle_runs_of(worker: str) -> int:
    """Settle what a worker still holds at its end."""
    return _settle_dead(Run.objects.live().filter(lease_owner=worker))


def reap_expired_leases() -> int:
    """Settle the runs of workers that stopped renewing their lease."""
    return _settle_dead(Run.objects.live().filter(lease_expires_at__lt=timezone.now()))


def _settle_dead(dead_runs: RunQuerySet) -> int:
    dead = list(dead_runs.values_list("pk", "fencing"))
    return sum(_settle(run_id, fencing) for run_id, fencing in dead)


@transaction.atomic
def _settle(run_id: UUID, fencing: int) -> bool:
    """Park the run where a person's decision is due or unheard, else end it.

    The fencing number moves on first, so that a worker that was only slow finds
    its lease lost.
    """
    dead = Run.objects.live().filter(pk=run_id, fencing=fencing)
    run = dead.select_related("branch").first()
    if run is None:
        return False
    try:
        lock_session(run.session_id)
    except SessionGoneError:
        return False
    if not dead.update(fencing=F("fencing") + 1):
        return False
    run.refresh_from_db(fields=["fencing"])
    if not _park_if_waiting(run, run.steps):
        _end_interrupted(run)
    return True


def _end_interrupted(run: Run) -> None:
    notices.add_notice(
        run,
        "interrupted",
        f"{INTERRUPTED} What it had written is kept; it can go on from there.",
    )
    _finish(
        run,
        RunOutcome(
            stop_reason=StopReason.CANCELLED,
            error_class="interrupted",
            error_text=INTERRUPTED,
            steps=run.steps,
        ),
    )


def publish_queue(session_id: UUID) -> None:
    session = AgentSession.objects.only("queue_paused").get(pk=session_id)
    publish_on_commit(
        QueueUpdated(
            session_id=session_id,
            queued_messages=session.messages.queued().count(),
            is_paused=session.queue_paused,
        )
    )


@transaction.atomic
def deliver_next_message(session_id: UUID) -> Run | None:
    """Start a run for the message that is next in the queue.

    Not while the queue is paused, unless it is urgent, and not in a session that was
    put away meanwhile.
    """
    session = lock_session(session_id)
    message = session.messages.queued().first()
    if message is None or session.closed_at or _is_busy(session):
        return None
    if session.queue_paused and not message.is_urgent:
        return None
    # It belongs where the conversation now ends, not where it was typed.
    seq = blocks.next_message_seq(session_id)
    Message.objects.filter(pk=message.pk).update(delivered_at=timezone.now(), seq=seq)
    message.refresh_from_db()
    publish_queue(session_id)
    blocks.publish_saved(message, is_new=True)
    is_prompt = message.role == MessageRole.USER
    return start_run(message, kind=RunKind.PROMPT if is_prompt else RunKind.COMPACT)
