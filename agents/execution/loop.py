"""The main loop of one turn: ask the agent, follow what it does, say how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from claude_agent_sdk import ResultMessage

from agents.conf import conf
from agents.domain import notices
from agents.domain.runs import RunOutcome
from agents.models.runs import StopReason
from agents.tasks import spawn

from .client import AgentClient
from .database import in_database
from .deltas import DeltaWriter
from .failures import STALLED, error_outcome, outcome, outcome_of_result
from .prompt_builder import PromptContent
from .translate import Translator
from .turn import Turn

logger = logging.getLogger(__name__)

STALL_LOOK_SECONDS = 1.0


async def run_agent_loop(
    turn: Turn, client: AgentClient, content: PromptContent
) -> RunOutcome:
    """Run one turn on a connected client, to its end or until it is asked to stop.

    The client is usable afterwards only when the outcome is a success.

    Raises: what ended the CLI's process, if something did.
    """
    translator = Translator(turn, DeltaWriter())
    client.gate.turn = turn
    try:
        async with _companions(turn, client, translator):
            await client.query(content)
            result = await _follow(turn, client, translator)
            if result is None:
                result = await _interrupt(client, translator)
    finally:
        await translator.deltas.save_all()
    if result is not None:
        return outcome_of_result(turn, result)
    return _outcome_without_result(turn)


@asynccontextmanager
async def _companions(
    turn: Turn, client: AgentClient, translator: Translator
) -> AsyncIterator[None]:
    """What runs beside the turn: the delta writer, the stop bell, the stall watch."""
    name = str(turn.run.pk)
    companions = [
        spawn(translator.deltas.run(), name=f"deltas-{name}"),
        spawn(_ring_stop(turn, client), name=f"stop-{name}"),
        spawn(_watch_stall(turn, client), name=f"stall-{name}"),
    ]
    try:
        yield
    finally:
        for companion in companions:
            companion.cancel()
        await asyncio.gather(*companions, return_exceptions=True)


async def _follow(
    turn: Turn, client: AgentClient, translator: Translator
) -> ResultMessage | None:
    """Translate messages up to the result; None when the turn was asked to stop."""
    async for message in client.messages():
        if isinstance(message, ResultMessage):
            await translator.handle_result_message(message)
            return message
        await translator.handle(message)
        if turn.stopping.is_set():
            return None
    return None


async def _interrupt(
    client: AgentClient, translator: Translator
) -> ResultMessage | None:
    """Stop the CLI's turn and take what it still says; bounded in time."""
    try:
        await client.interrupt()
        async with asyncio.timeout(conf().interrupt_timeout_seconds):
            async for message in client.messages():
                if isinstance(message, ResultMessage):
                    return message
                await translator.handle(message)
    except Exception:
        # The process is ended anyway; what counts is that Stop stops.
        logger.warning("interrupt failed", exc_info=True)
    return None


async def _ring_stop(turn: Turn, client: AgentClient) -> None:
    await turn.stopping.wait()
    client.stop_reading()


def _outcome_without_result(turn: Turn) -> RunOutcome:
    if turn.stopping.is_set():
        return outcome(turn, StopReason.CANCELLED)
    return error_outcome(turn, STALLED)


async def _watch_stall(turn: Turn, client: AgentClient) -> None:
    """Say so when the model's line has been silent for a while, once per silence."""
    while True:
        await asyncio.sleep(min(STALL_LOOK_SECONDS, conf().stalled_after_seconds / 4))
        line = client.line
        silence = turn.loop.time() - line.last_byte_at
        is_stalled = (
            line.calls_in_flight > 0 and silence >= conf().stalled_after_seconds
        )
        if is_stalled and turn.stall_notice_id is None:
            notice = await in_database(
                notices.add_notice,
                turn.run,
                "stalled",
                f"The model has sent nothing for {round(silence)} seconds. You can wait"
                " or press Stop.",
            )
            turn.stall_notice_id = notice.pk
        elif not is_stalled and turn.stall_notice_id is not None:
            await in_database(
                notices.update_notice,
                turn.stall_notice_id,
                "The model was silent for a while, then went on.",
                kind="info",
            )
            turn.stall_notice_id = None
