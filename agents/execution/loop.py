"""The main loop of one turn: ask the agent, follow what it does, say how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from claude_agent_sdk import ResultMessage

from agents.conf import conf
from agents.domain.runs import RunOutcome
from agents.tasks import spawn

from .client import AgentClient, ClientFailedError
from .deltas import DeltaWriter
from .failures import (
    CLI_DIED,
    error_outcome,
    outcome_of_result,
    outcome_of_stop,
)
from .prompt_builder import PromptContent
from .stall import StallWatch
from .translate import Translator
from .turn import Turn

logger = logging.getLogger(__name__)


async def run_agent_loop(
    turn: Turn, client: AgentClient, content: PromptContent | None, prompt_id: UUID
) -> RunOutcome:
    """Run one turn on a connected client, to its end or until it is asked to stop.

    Without `content` nothing is said: the CLI goes on by itself with a call that was
    put aside.

    The client is usable afterwards only when the turn went to its own end.

    Raises: ClientFailedError when the CLI's process ended.
    """
    translator = Translator(turn, DeltaWriter())
    client.gate.begin_turn(turn)
    try:
        async with _companions(turn, client, translator):
            if content is not None:
                await client.query(content, prompt_id)
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
    watch = StallWatch(turn.run, client.line)
    companions = [
        spawn(translator.deltas.run(), name=f"deltas-{name}"),
        spawn(_ring_stop(turn, client), name=f"stop-{name}"),
        spawn(watch.run(), name=f"stall-{name}"),
        spawn(_watch_clock(turn), name=f"clock-{name}"),
    ]
    try:
        yield
    finally:
        for companion in companions:
            companion.cancel()
        await asyncio.wait(companions)
        await watch.close()


async def _follow(
    turn: Turn, client: AgentClient, translator: Translator
) -> ResultMessage | None:
    """Translate messages up to the result; None when the turn was asked to stop."""
    async for message in client.messages():
        await translator.handle(message)
        if isinstance(message, ResultMessage):
            return message
        if turn.stopping.is_set():
            return None
    return None


async def _interrupt(
    client: AgentClient, translator: Translator
) -> ResultMessage | None:
    """Stop the CLI's turn and take what it still says; bounded in time."""
    try:
        async with asyncio.timeout(conf().interrupt_timeout_seconds):
            await client.interrupt()
            async for message in client.messages(heeds_stop=False):
                await translator.handle(message)
                if isinstance(message, ResultMessage):
                    return message
    except (ClientFailedError, TimeoutError):
        # The process is ended anyway; what counts is that Stop stops.
        logger.warning("session %s: interrupt failed", client.setup.session_id)
    return None


async def _watch_clock(turn: Turn) -> None:
    turn.clock.start()
    await turn.clock.until(turn.seconds_limit)
    turn.stop("timeout")


async def _ring_stop(turn: Turn, client: AgentClient) -> None:
    await turn.stopping.wait()
    client.stop_reading()


def _outcome_without_result(turn: Turn) -> RunOutcome:
    if turn.stopping.is_set():
        return outcome_of_stop(turn)
    return error_outcome(turn, CLI_DIED)
