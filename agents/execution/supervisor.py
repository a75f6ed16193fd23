"""Claims runs for this process, within its limits, and sees each to its end.

Whatever asks for a run only rings (`wake`); the supervisor reads the queue from the
database. Beside that it renews leases, settles the runs of workers that died, and
closes idle clients.
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
from .clock import WorkClock
from .confinement import probe_jail
from .database import in_database, own_database_thread
from .run_task import RunTask
from .turn import Turn

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0

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
        self._children: set[UUID] = set()
        self._bell = asyncio.Event()
        self._eviction_bell = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._helpers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to claim runs; also those that waited while no server was there."""
        global _current
        _current = self
        self._helpers = [
            spawn(self._claim_until_stopped(), name="supervisor-claims"),
            spawn(self._renew_until_stopped(), name="supervisor-leases"),
            spawn(self._evict_until_stopped(), name="supervisor-evictions"),
        ]

    def wake_from_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._bell.set)

    async def stop(self) -> None:
        """End every run within the stop deadline, and every process with it.

        A run that waits for a person is parked, so its question can still be
        answered; the others end as stopped with what they had written.
        """
        global _current
        _current = None
        self._stopping.set()
        self._bell.set()
        self._eviction_bell.set()
        for turn in self._turns.values():
            turn.cool_down()
        # Never cancelled: a claim in its middle would leave a run that nobody has.
        await asyncio.wait(self._helpers)
        await self._end_runs()
        await self.pool.close_all()

    async def _end_runs(self) -> None:
        tasks = list(self._tasks.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=conf().stop_deadline_seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _claim_until_stopped(self) -> None:
        async with own_database_thread():
            while not self._stopping.is_set():
                self._bell.clear()
                try:
                    await self._claim_waiting()
                except Exception:
                    logger.exception("looking for runs failed")
                await _wait_for(self._bell, LOOK_SECONDS)

    async def _claim_waiting(self) -> None:
        """Claim in the order of the queue, passing over people at their limit.

        A run that another agent waits for takes no slot: else a parent and its child
        could wait for each other. Its own limits were checked when it was asked for.
        """
        for waiting in await in_database(waiting_runs):
            if self._stopping.is_set():
                return
            if waiting.run_id in self._tasks:
                continue
            is_full = self._is_full() or self._is_full_for(waiting.user_id)
            if is_full and not waiting.is_child:
                continue
            run = await in_database(runs.claim_run, waiting.run_id, self.name)
            if run is not None:
                self._begin(run, waiting.user_id, is_child=waiting.is_child)

    def _is_full(self) -> bool:
        return self._count(self._tasks) >= conf().max_runs_per_process

    def _is_full_for(self, user_id: UUID) -> bool:
        theirs = [run for run, user in self._users.items() if user == user_id]
        return self._count(theirs) >= conf().max_runs_per_user

    def _count(self, run_ids: Iterable[UUID]) -> int:
        """How many take a slot: who waits for a person takes none."""
        return sum(
            1
            for run_id in run_ids
            if not self._turns[run_id].waiting and run_id not in self._children
        )

    def _begin(self, run: Run, user_id: UUID, *, is_child: bool) -> None:
        turn = Turn(
            run,
            jailed=self.jail.jailed,
            on_slot_freed=self._bell.set,
            clock=WorkClock(before_seconds=run.worked_ms / 1000),
            steps_before=run.steps,
        )
        self._turns[run.pk] = turn
        if self._stopping.is_set():
            turn.stop("shutdown")
        self._users[run.pk] = user_id
        if is_child:
            self._children.add(run.pk)
        task = spawn(self._see_through(turn), name=f"run-{run.pk}")
        self._tasks[run.pk] = task
        task.add_done_callback(lambda _: self._end(run.pk))

    def _end(self, run_id: UUID) -> None:
        for kept in (self._tasks, self._turns, self._users):
            kept.pop(run_id, None)
        self._children.discard(run_id)
        self._bell.set()
        self._eviction_bell.set()

    async def _see_through(self, turn: Turn) -> None:
        async with own_database_thread():
            hearing = spawn(_hear(turn), name=f"control-{turn.run.pk}")
            try:
                await RunTask(turn, self.pool, self.jail).run()
            finally:
                hearing.cancel()
                await asyncio.wait({hearing})

    async def _renew_until_stopped(self) -> None:
        """First our own leases, then the others': also after the machine slept."""
        async with own_database_thread():
            while not await _wait_for(self._stopping, conf().heartbeat_seconds):
                try:
                    for turn in list(self._turns.values()):
                        await _renew(turn)
                    await in_database(runs.reap_expired_leases)
                    await in_database(approvals.expire_approvals)
                except Exception:
                    logger.exception("a look at the leases failed")

    async def _evict_until_stopped(self) -> None:
        """Apart from the leases, since closing a client can take seconds."""
        while not self._stopping.is_set():
            self._eviction_bell.clear()
            await self.pool.evict()
            await _wait_for(self._eviction_bell, conf().heartbeat_seconds)


async def _wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Returns: whether the event came before the time was over."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


async def _renew(turn: Turn) -> None:
    try:
        stop_requested_at = await in_database(
            runs.extend_lease, turn.run, worked_ms=turn.clock.worked_ms
        )
    except LeaseLostError:
        turn.stop("lease")
        return
    if stop_requested_at is not None:
        turn.stop("person")


async def _hear(turn: Turn) -> None:
    """Stop requests ring the control group; a lost ring is seen at the next look."""
    async with listen(control_group(turn.session_id)) as inbox:
        while True:
            if await in_database(runs.is_stop_requested, turn.run):
                turn.stop("person")
            await inbox.wait(conf().control_poll_seconds)
