"""What calls cost and what was asked: read from the traffic, written beside it.

`Meter` reads one call's numbers. `Books` writes them, and the last request, from a
queue of its own, so that no answer ever waits for the database. Before a call begins
the same queue is asked whether its budgets allow it, behind all costs known so far.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from channels.db import database_sync_to_async
from django.db import connections

from agents.conf import conf
from agents.domain.budgets import refusal_of_call
from agents.domain.requests import keep_request
from agents.domain.usage import Usage, record_usage
from agents.tasks import spawn

from .lines import Line

logger = logging.getLogger(__name__)

STOP_SECONDS = 5.0

_FIELDS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


@dataclass(slots=True)
class Meter:
    """The numbers of one answer, as far as they are known."""

    message_id: str = ""
    model: str = ""
    has_begun: bool = False
    is_over: bool = False
    _counts: dict[str, int] = field(default_factory=dict)

    def observe(self, data: dict[str, Any]) -> None:
        """Take in one event of a streamed answer."""
        match data.get("type"):
            case "message_start":
                self.read_message(data.get("message"))
            case "message_delta":
                self._read_usage(data.get("usage"))
            case "message_stop" | "error":
                self.is_over = True

    def read_message(self, message: object) -> None:
        """Take in a whole message, or the beginning of one."""
        if not isinstance(message, dict):
            return
        self.has_begun = True
        self.message_id = str(message.get("id") or "")
        self.model = str(message.get("model") or "")
        self._read_usage(message.get("usage"))

    def usage(self) -> Usage:
        return Usage(**self._counts)

    def _read_usage(self, usage: object) -> None:
        """Counts only ever grow, and some gateways send zeros at one of the ends."""
        if not isinstance(usage, dict):
            return
        for theirs, ours in _FIELDS.items():
            count = usage.get(theirs)
            if isinstance(count, int) and count > self._counts.get(ours, 0):
                self._counts[ours] = count


@dataclass(frozen=True, slots=True)
class _Job:
    """Something to do in the database, and who waits for what comes of it."""

    work: Callable[[], Any]
    answer: asyncio.Future[Any] | None = None

    def settle(self, result: object) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(result)

    def fail(self, error: Exception) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)


class Books:
    """The gateway's writer: one job after the other, on a thread of its own."""

    def __init__(self) -> None:
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue()
        self._worker = spawn(self._work(), name="gateway-books")

    def record(self, line: Line, meter: Meter, *, agent_id: str) -> None:
        """Enter an answer. An answer without an id of its own gets one."""
        work = partial(
            record_usage,
            session_id=line.session_id,
            provider_id=line.upstream.provider_id,
            message_id=meter.message_id or f"call_{uuid4().hex}",
            model=meter.model,
            usage=meter.usage(),
            agent_id=agent_id,
            is_side=line.is_side,
        )
        self._jobs.put_nowait(_Job(work))

    async def refusal(self, line: Line) -> str:
        """Why a call of this line may not begin, as a sentence; empty if it may.

        Raises: whatever kept it from being found out; then the call must not begin.
        """
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        work = partial(refusal_of_call, line.session_id, is_side=line.is_side)
        self._jobs.put_nowait(_Job(work, answer))
        return await answer

    def keep(self, session_id: UUID, body: bytes) -> None:
        limit = conf().last_request_max_bytes
        work = partial(keep_request, session_id, body, max_bytes=limit)
        self._jobs.put_nowait(_Job(work))

    async def settle(self) -> None:
        """Wait until everything put down so far stands in the database."""
        await self._jobs.join()

    async def stop(self) -> None:
        """Write what is waiting, within `STOP_SECONDS`, and end."""
        self._jobs.put_nowait(None)
        await asyncio.wait({self._worker}, timeout=STOP_SECONDS)
        self._worker.cancel()

    async def _work(self) -> None:
        async with ThreadSensitiveContext():
            while (job := await self._jobs.get()) is not None:
                try:
                    job.settle(await database_sync_to_async(job.work)())
                except Exception as error:
                    logger.exception("the gateway could not use its books")
                    job.fail(error)
                finally:
                    self._jobs.task_done()
            self._jobs.task_done()
            await sync_to_async(connections.close_all)()
