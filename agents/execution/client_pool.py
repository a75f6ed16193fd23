"""The live clients of this process: one per session, kept warm between turns."""

from __future__ import annotations

import asyncio
from uuid import UUID

from agents.conf import conf
from agents.gateway.server import Gateway

from .client import AgentClient
from .confinement import JailStatus
from .preparation import Prepared


class ClientPool:
    def __init__(self, gateway: Gateway, jail: JailStatus) -> None:
        self._gateway = gateway
        self._jail = jail
        self._clients: dict[UUID, AgentClient] = {}
        self._busy: set[UUID] = set()
        self._starts = asyncio.Semaphore(conf().max_cli_starts)

    async def take(self, prepared: Prepared) -> AgentClient:
        """The session's warm client if it still fits, else a newly started one.

        Raises: what `AgentClient.connect` raises; then nothing is left running.
        """
        session_id = prepared.setup.session_id
        self._busy.add(session_id)
        warm = self._clients.get(session_id)
        if warm is not None and self._fits(warm, prepared):
            return warm
        if warm is not None:
            await self._close(session_id)
        async with self._starts:
            client = AgentClient(
                prepared.setup,
                self._gateway,
                prepared.upstream,
                jailed=self._jail.jailed,
            )
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
            and client.setup == prepared.setup
            and client.line.upstream == prepared.upstream
        )

    async def put_back(self, session_id: UUID, *, keep: bool) -> None:
        """The turn is over: keep the client warm, or end its process tree."""
        client = self._clients.get(session_id)
        if client is not None and not (keep and client.is_alive):
            await self._close(session_id)
        elif client is not None:
            client.gate.turn = None
            client.idle_since = asyncio.get_running_loop().time()
        self._busy.discard(session_id)
        await self.evict()

    async def settle_ledger(self) -> None:
        """Wait until every answer so far is entered, so that runs show their cost."""
        await self._gateway.settle()

    async def evict(self) -> None:
        """Close clients idle too long or too many; never one in a turn."""
        idle = sorted(
            (
                client
                for session_id, client in self._clients.items()
                if session_id not in self._busy
            ),
            key=lambda client: client.idle_since,
        )
        now = asyncio.get_running_loop().time()
        surplus = len(idle) - conf().warm_clients
        for position, client in enumerate(idle):
            is_old = now - client.idle_since > conf().warm_idle_seconds
            if position < surplus or is_old or not client.is_alive:
                await self._close(client.setup.session_id)

    async def close_session(self, session_id: UUID) -> None:
        """End the session's idle process, if it has one (it is deleted, say)."""
        if session_id not in self._busy:
            await self._close(session_id)

    async def close_all(self) -> None:
        await asyncio.gather(*(self._close(each) for each in list(self._clients)))

    async def _close(self, session_id: UUID) -> None:
        client = self._clients.pop(session_id, None)
        if client is not None:
            await client.close()
