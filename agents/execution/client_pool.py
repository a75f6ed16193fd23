"""The live clients of this process: one per session, kept warm between turns."""

from __future__ import annotations

import asyncio
from uuid import UUID

from agents.conf import conf
from agents.gateway.server import Gateway
from agents.mcp.bridge import Bridge
from agents.tasks import spawn

from .client import AgentClient
from .confinement import JailStatus
from .preparation import Prepared
from .tool_servers import ServerWays
from .turn import Turn


class ClientPool:
    def __init__(self, gateway: Gateway, jail: JailStatus) -> None:
        self._gateway = gateway
        self._jail = jail
        self._bridge = Bridge(ServerWays(jail))
        self._clients: dict[UUID, AgentClient] = {}
        self._busy: set[UUID] = set()
        self._closings: dict[UUID, asyncio.Task[None]] = {}
        self._starts = asyncio.Semaphore(conf().max_cli_starts)

    @property
    def starting(self) -> int:
        """How many processes are being started right now."""
        return sum(1 for client in self._clients.values() if client.is_starting)

    async def take(self, prepared: Prepared, turn: Turn) -> AgentClient:
        """The session's warm client if it still fits, else a newly started one.

        A resumed CLI may call a tool before it is even connected, so its gate knows
        the turn before.

        Raises: ClientFailedError; then nothing is left running.
        """
        session_id = prepared.setup.session_id
        self._busy.add(session_id)
        warm = self._clients.get(session_id)
        if warm is not None and self._fits(warm, prepared):
            return warm
        # Also one that is being closed right now: its end takes all processes of
        # the session with it.
        await self._close(session_id)
        async with self._starts:
            client = AgentClient(
                prepared.setup,
                self._gateway,
                prepared.upstream,
                self._bridge,
                jailed=self._jail.jailed,
            )
            client.gate.begin_turn(turn)
            self._clients[session_id] = client
            try:
                await client.connect(prepared.start)
            except BaseException:
                await self._close(session_id)
                raise
        return client

    def _fits(self, client: AgentClient, prepared: Prepared) -> bool:
        return (
            client.is_alive
            and prepared.start.resume_at is None
            and prepared.content is not None
            and client.setup == prepared.setup
            and client.line.upstream == prepared.upstream
        )

    async def put_back(self, session_id: UUID, *, keep: bool) -> None:
        """The turn is over: keep the client warm, or end its process tree.

        Returns when the processes are gone and the cost of the turn is entered.
        """
        client = self._clients.get(session_id)
        if client is not None and keep and client.is_alive:
            client.gate.end_turn()
            client.idle_since = asyncio.get_running_loop().time()
        else:
            await self._close(session_id)
        self._busy.discard(session_id)
        await self._settle_books()

    async def _settle_books(self) -> None:
        """The books have a thread of their own; a run waits for them only so long."""
        settling = spawn(self._gateway.settle(), name="settle-books")
        await asyncio.wait({settling}, timeout=conf().stop_deadline_seconds)
        settling.cancel()

    async def evict(self) -> None:
        """Close clients idle too long or too many; never one in a turn."""
        idle = sorted(
            (client for client in self._clients.values() if self._is_idle(client)),
            key=lambda client: client.idle_since,
        )
        now = asyncio.get_running_loop().time()
        surplus = len(idle) - conf().warm_clients
        for position, client in enumerate(idle):
            is_old = now - client.idle_since > conf().warm_idle_seconds
            is_due = position < surplus or is_old or not client.is_alive
            # Asked again: closing the one before took time.
            if is_due and self._is_idle(client):
                await self._close(client.setup.session_id)
        await self._bridge.tidy()

    def _is_idle(self, client: AgentClient) -> bool:
        session_id = client.setup.session_id
        is_current = self._clients.get(session_id) is client
        return is_current and session_id not in self._busy

    def is_busy(self, session_id: UUID) -> bool:
        """Whether a turn has the session's client, or waits for it."""
        return session_id in self._busy

    async def close_session(self, session_id: UUID) -> None:
        """End the session's idle process, if it has one (it is deleted, say)."""
        if session_id not in self._busy:
            await self._close(session_id)

    async def close_all(self) -> None:
        known = {*self._clients, *self._closings}
        await asyncio.gather(
            self._bridge.close(), *(self._close(each) for each in known)
        )

    async def _close(self, session_id: UUID) -> None:
        """Close and wait; a close that has begun goes on even if nobody waits."""
        client = self._clients.pop(session_id, None)
        if client is not None:
            closing = spawn(client.close(), name=f"close-{session_id}")
            self._closings[session_id] = closing
            closing.add_done_callback(lambda _: self._closings.pop(session_id, None))
        if session_id in self._closings:
            await asyncio.shield(self._closings[session_id])
