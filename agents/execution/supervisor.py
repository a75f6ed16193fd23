"""Claims runs for this process, within its limits, and sees each to its end.

Whatever asks for a run only rings (`wake`); the supervisor reads the queue from the
database. Its ticker renews leases, hears lost stop requests, closes idle clients and
settles the runs of workers that died.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Iterable
from uuid import UUID, uuid4

from agents.conf import conf
from agents.domain import approvals, runs
from agents.domain.queries.queue import waiting_runs
from agents.errors import LeaseLostError
from agents.events.bus import control_group, listen
from agents.gateway.server import Gateway
from agents.models import Run
from agents.tasks import spawn

from .client_pool import ClientPool
from .confinement import probe_jail
from .database import in_database, own_database_thread
from .run_task import RunTask
from .turn import Turn

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
LISTEN_SECONDS = 5.0

_current: Supervisor | None = None


def wake(run_id: UUID) -> None:
    """Ring from any thread: a run may be waiting. Without a supervisor: nothing."""
    supervisor = _current
    if supervisor is not None:
        supervisor.wake_from_thread()


class Supervisor:
    def __init__(self, gateway: Gateway) -> None:
        self.jail = probe_jail()
        self.name = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.pool = ClientPool(gateway, self.jail)
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._turns: dict[UUID, Turn] = {}
        self._users: dict[UUID, UUID] = {}
        self._bell = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._is_stopping = False
        self._helpers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to claim runs; also those that waited while no server was there."""
        global _current
        _current = self
        self._helpers = [
            spawn(self._claim_forever(), name="supervisor-claims"),
            spawn(self._tick_forever(), name="supervisor-ticker"),
        ]
        self._bell.set()

    def wake_from_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._bell.set)

    async def stop(self) -> None:
        """End every run within the stop deadline, and every process with it.

        A run that waits for a person is parked, so its question can still be
        answered; the others end as stopped with what they had written.
        """
        global _current
        self._is_stopping = True
        _current = None
        for helper in self._helpers:
            helper.cancel()
        await asyncio.gather(*self._helpers, return_exceptions=True)
        for turn in self._turns.values():
            turn.stop("shutdown")
        tasks = list(self._tasks.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=conf().stop_deadline_seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self.pool.close_all()

    async def _claim_forever(self) -> None:
        async with own_database_thread():
            while True:
                self._bell.clear()
                try:
                    await self._claim_waiting()
                except Exception:
                    logger.exception("looking for runs failed")
                try:
                    await asyncio.wait_for(self._bell.wait(), LOOK_SECONDS)
                except TimeoutError:
                    continue

    async def _claim_waiting(self) -> None:
        """Claim in the order of the queue, passing over people at their limit."""
        for run_id, user_id in await in_database(waiting_runs):
            if self._is_stopping or self._is_full():
                return
            if run_id in self._tasks or self._is_full_for(user_id):
                continue
            run = await in_database(runs.claim_run, run_id, self.name)
            if run is not None:
                self._begin(run, user_id)

    def _is_full(self) -> bool:
        return self._count(self._tasks) >= conf().max_runs_per_process

    def _is_full_for(self, user_id: UUID) -> bool:
        theirs = [run for run, user in self._users.items() if user == user_id]
        return self._count(theirs) >= conf().max_runs_per_user

    def _count(self, run_ids: Iterable[UUID]) -> int:
        """How many take a slot: who waits for a person takes none."""
        return sum(1 for run_id in run_ids if not self._turns[run_id].waiting)

    def _begin(self, run: Run, user_id: UUID) -> None:
        turn = Turn(run, jailed=self.jail.jailed, on_slot_freed=self._bell.set)
        self._turns[run.pk] = turn
        self._users[run.pk] = user_id
        task = spawn(self._see_through(turn), name=f"run-{run.pk}")
        self._tasks[run.pk] = task
        task.add_done_callback(lambda _: self._end(run.pk))

    def _end(self, run_id: UUID) -> None:
        for kept in (self._tasks, self._turns, self._users):
            kept.pop(run_id, None)
        self._bell.set()

    async def _see_through(self, turn: Turn) -> None:
        hearing = spawn(self._hear(turn), name=f"control-{turn.run.pk}")
        try:
            async with own_database_thread():
                await RunTask(turn, self.pool, self.jail).run()
        finally:
            hearing.cancel()

    async def _hear(self, turn: Turn) -> None:
        """Stop requests come by the control group; lost ones by the heartbeat."""
        async with listen(control_group(turn.session_id)) as inbox:
            while True:
                message = await inbox.wait(LISTEN_SECONDS)
                if message is not None and message["type"] == "control.stop":
                    turn.stop("person")

    async def _tick_forever(self) -> None:
        async with own_database_thread():
            while True:
                await asyncio.sleep(conf().heartbeat_seconds)
                try:
                    await self._tick()
                except Exception:
                    logger.exception("a tick of the supervisor failed")

    async def _tick(self) -> None:
        for turn in list(self._turns.values()):
            await self._renew(turn)
        await in_database(runs.reap_expired_leases)
        await in_database(approvals.expire_approvals)
        await self.pool.evict()

    async def _renew(self, turn: Turn) -> None:
        try:
            stop_requested_at = await in_database(runs.extend_lease, turn.run)
        except LeaseLostError:
            turn.stop("lease")
            return
        if stop_requested_at is not None:
            turn.stop("person")
