"""One run from claimed to finished: prepare, take a client, loop, settle.

This is the top of a run's task: whatever goes wrong below ends here, as a finished
run with an error class and a card that says what to do.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from django.db import transaction

from agents.domain import budgets, next_mode, notices, overspending, runs
from agents.domain.runs import RunOutcome
from agents.errors import AgentsError, LeaseLostError
from agents.models.runs import StopReason
from agents.tasks import spawn

from . import metadata
from .client import AgentClient, ClientFailedError
from .client_pool import ClientPool
from .confinement import JailStatus
from .database import in_database, own_database_thread
from .failures import error_outcome, failure_of_exception, outcome_of_stop
from .loop import run_agent_loop
from .preparation import Prepared, end_of_transcript, prepare
from .snapshots import after_turn, at_end, before_turn
from .turn import Turn

logger = logging.getLogger(__name__)

STOPPED = "Stopped. What the agent had written is kept."
DENIED = "Stopped, because the call was denied."
SHUT_DOWN = "The server was shut down. What the agent had written is kept."
STEP_FAILED = (
    "A tool failed several times in a row, and nothing that the agent did afterwards"
    " succeeded. What it was asked may not be done."
)
LIMIT_CARDS = {
    StopReason.MAX_STEPS: (
        "The step limit was reached. Continue to let the agent go on."
    ),
    StopReason.TIMEOUT: (
        "The turn's time is over. Continue to let the agent go on, or raise its effort"
        " in the settings."
    ),
    StopReason.TOO_MANY_FAILURES: (
        "The agent insisted on calls that had failed several times. Tell it what to do"
        " differently, or continue."
    ),
    StopReason.BUDGET_EXCEEDED: (
        "The budget is used up. Raise it in the settings to let the agent go on."
    ),
}


class RunTask:
    def __init__(self, turn: Turn, pool: ClientPool, jail: JailStatus) -> None:
        self.turn = turn
        self._pool = pool
        self._jail = jail
        self._mode = turn.run.session.mode

    async def run(self) -> None:
        """See the run to its end; a lost lease ends it without a further word."""
        ended: RunOutcome | None = None
        metadata.turn_began(self.turn.session_id)
        try:
            ended = await self._carry_out()
        except LeaseLostError:
            logger.warning("run %s was taken over", self.turn.run.pk)
        finally:
            # Also when cancelled, at the end of the stop deadline: then the next
            # start settles the run.
            keep = ended is not None and ended.is_whole and not self.turn.is_compaction
            await self._pool.put_back(self.turn.session_id, keep=keep)
        if ended is not None:
            await self._settle(ended)
            metadata.turn_ended(self.turn.session_id)

    async def _carry_out(self) -> RunOutcome:
        try:
            ended = await self._follow_turn()
            return await self._with_resume_point(ended) if ended.is_whole else ended
        except LeaseLostError:
            raise
        except Exception as error:  # noqa: BLE001  top of a run; logged in _failed
            # Whatever a deleted session's missing rows led to is no failure.
            await in_database(runs.check_is_there, self.turn.run)
            return self._failed(error)

    async def _follow_turn(self) -> RunOutcome:
        """Record the files beside the turn's beginning: calls wait until that's done.

        First come files that are put back, and those of a call that was put aside.
        """
        turn = self.turn
        prepared = await in_database(prepare, turn.run, self._jail)
        files = spawn(self._record_files(), name=f"files-{turn.run.pk}")
        try:
            if prepared.needs_files_first:
                await asyncio.wait({files})
            return await self._converse(prepared)
        finally:
            await asyncio.wait({files})

    async def _record_files(self) -> None:
        """In a thread of its own, which the first words need not wait for."""
        try:
            async with own_database_thread():
                await before_turn(self.turn)
        except LeaseLostError:  # a task's error would be logged
            self.turn.stop("lease")
        finally:
            self.turn.files_recorded.set()

    async def _converse(self, prepared: Prepared) -> RunOutcome:
        turn = self.turn
        if await in_database(budgets.refusal_of_call, turn.session_id):
            turn.stop("budget")  # before a process is started for nothing
            return outcome_of_stop(turn)
        client = await self._take_client(prepared)
        if client is None:
            return outcome_of_stop(turn)
        await in_database(runs.mark_running, turn.run)
        client.line.on_trouble = turn.stop_from_gateway
        try:
            return await run_agent_loop(
                turn, client, prepared.content, prepared.prompt_id
            )
        finally:
            client.line.on_trouble = None

    async def _take_client(self, prepared: Prepared) -> AgentClient | None:
        """A connected client; None when the turn was stopped before it was there."""
        turn = self.turn
        taking = spawn(self._take(prepared), name=f"take-{turn.run.pk}")
        stopping = spawn(turn.stopping.wait(), name=f"stop-start-{turn.run.pk}")
        try:
            await asyncio.wait({taking, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not taking.done():
                taking.cancel()
                await asyncio.wait({taking})
        if turn.stopping.is_set():
            return None
        taken = taking.result()
        if isinstance(taken, ClientFailedError):
            raise taken
        return taken

    async def _take(self, prepared: Prepared) -> AgentClient | ClientFailedError:
        """The failure as a value: raised in a task it would be logged twice."""
        try:
            return await self._pool.take(prepared, self.turn)
        except ClientFailedError as error:
            return error

    def _failed(self, error: Exception) -> RunOutcome:
        turn = self.turn
        if turn.stopping.is_set():
            return outcome_of_stop(turn)
        failure = failure_of_exception(error)
        if isinstance(error, AgentsError):  # a person can mend it, and is told how
            logger.warning("run %s failed: %s", turn.run.pk, failure.sentence)
        else:
            logger.error(
                "run %s failed: %s", turn.run.pk, failure.error_class, exc_info=error
            )
        return error_outcome(turn, failure)

    async def _with_resume_point(self, ended: RunOutcome) -> RunOutcome:
        last = await in_database(end_of_transcript, self.turn.run)
        return replace(ended, sdk_resume_uuid=last)

    async def _settle(self, ended: RunOutcome) -> None:
        turn = self.turn
        try:
            await after_turn(turn)
            if self._may_ask_to_exceed(ended):
                await in_database(overspending.ask_to_exceed, turn.run)
            if self._may_wait(ended) and await in_database(
                runs.park_run,
                turn.run,
                steps=ended.steps,
                worked_ms=turn.clock.worked_ms,
                deferred_tool_use_id=turn.deferred_tool_use_id
                if ended.stop_reason == StopReason.PARKED
                else "",
            ):
                return
            if (
                ended.stop_reason == StopReason.PARKED
            ):  # somebody pressed Stop meanwhile
                ended = replace(ended, stop_reason=StopReason.CANCELLED)
            await at_end(turn)
            await in_database(self._finish, ended)
        except LeaseLostError:
            logger.warning("run %s was taken over", turn.run.pk)

    def _may_wait(self, ended: RunOutcome) -> bool:
        """Whether the turn ended only because nobody came to decide in time."""
        is_cut_short = self.turn.stop_cause in ("shutdown", "parking")
        is_parked = ended.stop_reason == StopReason.PARKED
        return is_cut_short or is_parked or self._may_ask_to_exceed(ended)

    def _may_ask_to_exceed(self, ended: RunOutcome) -> bool:
        """A summary is not worth a question; it can be asked for again."""
        is_over_budget = ended.stop_reason == StopReason.BUDGET_EXCEEDED
        return is_over_budget and not self.turn.is_compaction

    @transaction.atomic
    def _finish(self, ended: RunOutcome) -> None:
        """Every early end leaves a card: what happened and what can be done.

        In one transaction with the end: a worker that lost its lease says nothing.
        """
        kind, text = self._card(ended)
        if text:
            notices.add_notice(
                self.turn.run,
                kind,
                text,
                error_class=ended.error_class,
                stop_reason=ended.stop_reason,
            )
        if ended.success:
            self._go_on_in_next_mode()
        runs.finish_run(self.turn.run, ended)

    def _go_on_in_next_mode(self) -> None:
        if self.turn.has_approved_plan:
            next_mode.ask_to_carry_out(self.turn.run)
        else:
            next_mode.move_on(self.turn.run, self._mode)

    def _card(self, ended: RunOutcome) -> tuple[str, str]:
        if ended.error_text:
            return "error", ended.error_text
        match ended.stop_reason:
            case StopReason.CANCELLED if self.turn.stop_cause == "shutdown":
                return "interrupted", SHUT_DOWN
            case StopReason.CANCELLED:
                return "stopped", STOPPED
            case StopReason.DENIED:
                return "stopped", DENIED
            case reason if reason in LIMIT_CARDS:
                return "interrupted", LIMIT_CARDS[reason]
            case _ if ended.has_unresolved_failure and ended.is_whole:
                return "step_failed", STEP_FAILED
            case _:
                return "", ""
