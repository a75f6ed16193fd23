"""One run from claimed to finished: prepare, take a client, loop, settle.

This is the top of a run's task: whatever goes wrong below ends here, as a finished
run with an error class and a card that says what to do.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from agents.domain import notices, runs
from agents.domain.runs import RunOutcome
from agents.errors import LeaseLostError
from agents.models.runs import StopReason

from .client_pool import ClientPool
from .confinement import JailStatus
from .database import in_database
from .failures import error_outcome, failure_of_exception, outcome
from .loop import run_agent_loop
from .preparation import end_of_transcript, prepare
from .turn import Turn

logger = logging.getLogger(__name__)

STOPPED = "Stopped. What the agent had written is kept."
DENIED = "Stopped, because the call was denied."
SHUT_DOWN = "The server was shut down. What the agent had written is kept."
MAX_STEPS = "The step limit was reached. Continue to let the agent go on."


class RunTask:
    def __init__(self, turn: Turn, pool: ClientPool, jail: JailStatus) -> None:
        self.turn = turn
        self._pool = pool
        self._jail = jail

    async def run(self) -> None:
        """See the run to its end; a lost lease ends it without a further word."""
        try:
            ended = await self._carry_out()
            await self._pool.put_back(self.turn.session_id, keep=ended.success)
            await self._pool.settle_ledger()
            await self._settle(ended)
        except LeaseLostError:
            logger.warning("run %s was taken over", self.turn.run.pk)
            await self._pool.put_back(self.turn.session_id, keep=False)
        except asyncio.CancelledError:
            # The stop deadline is over; the next start settles what is left.
            await self._pool.put_back(self.turn.session_id, keep=False)
            raise

    async def _carry_out(self) -> RunOutcome:
        turn = self.turn
        stderr = ""
        try:
            prepared = await in_database(prepare, turn.run, self._jail)
            if turn.stopping.is_set():
                return outcome(turn, StopReason.CANCELLED)
            client = await self._pool.take(prepared)
            client.line.on_trouble = turn.stop_from_gateway
            await in_database(runs.mark_running, turn.run)
            try:
                ended = await run_agent_loop(turn, client, prepared.content)
            finally:
                stderr = client.stderr_tail
                client.line.on_trouble = None
        except (LeaseLostError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001  top of a run; logged in _failed
            return self._failed(error, stderr)
        if ended.success:
            return await self._with_resume_point(ended)
        return ended

    def _failed(self, error: Exception, stderr: str) -> RunOutcome:
        turn = self.turn
        if turn.stopping.is_set() and turn.stop_cause != "trouble":
            return outcome(turn, StopReason.CANCELLED)
        failure = failure_of_exception(error, stderr)
        logger.error(
            "run %s failed: %s", turn.run.pk, failure.error_class, exc_info=error
        )
        return error_outcome(turn, failure)

    async def _with_resume_point(self, ended: RunOutcome) -> RunOutcome:
        last = await in_database(end_of_transcript, self.turn.run)
        return replace(ended, sdk_resume_uuid=last)

    async def _settle(self, ended: RunOutcome) -> None:
        turn = self.turn
        if turn.stop_cause == "shutdown" and await in_database(
            runs.park_run, turn.run, steps=ended.steps
        ):
            return
        await self._explain(ended)
        await in_database(runs.finish_run, turn.run, ended)

    async def _explain(self, ended: RunOutcome) -> None:
        """Every early end leaves a card: what happened and what can be done."""
        kind, text = self._card(ended)
        if text:
            await in_database(
                notices.add_notice,
                self.turn.run,
                kind,
                text,
                error_class=ended.error_class,
                stop_reason=ended.stop_reason,
            )

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
            case StopReason.MAX_STEPS:
                return "interrupted", MAX_STEPS
            case _:
                return "", ""
