"""The connections of this process to MCP servers, made when a tool is first called.

One connection serves many turns. Which tools there are is read from the rows, so no
session waits for a server; what is wrong with one ends as the answer of a call and as
the status on the server's row.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from django.db import connections
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent

from agents.conf import conf, mcp_homes_dir
from agents.domain.mcp_discovery import Report, record_report
from agents.domain.mcp_servers import ConnectionSpec, connection_spec, without_server
from agents.tasks import spawn
from agents.workspaces.disk import remove_tree

from .connection import Connection, ConnectionFailedError, Ways

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# A server that did not start is not started again by each call that wants it.
BACK_OFF_SECONDS = 30.0
GONE = "This MCP server is no longer there, or it is switched off."
BROKEN = (
    "The MCP server {slug} can’t be used: {reason} A person can see more, and retry,"
    " under Settings → MCP servers."
)
UNUSABLE = "The MCP server {slug} gave an unusable answer: {error}"
TOO_SLOW = "The MCP server {slug} did not answer this call within {seconds:g} s."


@dataclass(frozen=True, slots=True)
class _Refusal:
    spec: ConnectionSpec
    report: Report
    until: float


class Bridge:
    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._connections: dict[UUID, Connection] = {}
        self._refusals: dict[UUID, _Refusal] = {}
        self._closings: set[asyncio.Task[None]] = set()

    async def call(
        self, server_id: UUID, name: str, arguments: dict[str, Any]
    ) -> CallToolResult:
        """Call a tool; whatever goes wrong is an answer that the model can read."""
        spec = await _in_own_thread(connection_spec, server_id)
        if spec is None:
            return _error(GONE)
        try:
            return await self._call(spec, name, arguments)
        except ConnectionFailedError as error:
            return _error(BROKEN.format(slug=spec.slug, reason=error.report.reason))
        except TimeoutError:
            seconds = conf().mcp_call_seconds
            return _error(TOO_SLOW.format(slug=spec.slug, seconds=seconds))
        except MCPError as error:
            return _error(error.message)
        except Exception as error:
            # A server that answers against the protocol; the text is about its answer.
            logger.exception("MCP server %s: a call failed", spec.server_id)
            return _error(
                f"The MCP server {spec.slug} gave an unusable answer: {error}"
            )

    async def _call(
        self, spec: ConnectionSpec, name: str, arguments: dict[str, Any]
    ) -> CallToolResult:
        try:
            connection = await self._connected(spec)
            return await connection.call(name, arguments)
        except ConnectionFailedError as error:
            await self._give_up(spec, error)
            if not error.is_lost:
                raise
        # The server was restarted and did not look at the call: once more, anew.
        return await (await self._connected(spec)).call(name, arguments)

    async def _connected(self, spec: ConnectionSpec) -> Connection:
        connection = self._take(spec)
        try:
            await connection.connected()
        except ConnectionFailedError as error:
            until = asyncio.get_running_loop().time() + BACK_OFF_SECONDS
            self._refusals[spec.server_id] = _Refusal(spec, error.report, until)
            raise
        return connection

    def _take(self, spec: ConnectionSpec) -> Connection:
        """The connection that is there, or one that begins now.

        Raises: ConnectionFailedError while the last failure is too fresh.
        """
        connection = self._connections.get(spec.server_id)
        if connection is not None and connection.is_alive and connection.spec == spec:
            return connection
        refusal = self._refusals.pop(spec.server_id, None)
        now = asyncio.get_running_loop().time()
        if refusal is not None and refusal.spec == spec and now < refusal.until:
            self._refusals[spec.server_id] = refusal
            raise ConnectionFailedError(refusal.report)
        self._drop(spec.server_id)
        connection = Connection(spec, self._ways, record)
        self._connections[spec.server_id] = connection
        return connection

    async def _give_up(
        self, spec: ConnectionSpec, error: ConnectionFailedError
    ) -> None:
        """The connection is of no use: refused in a call, or forgotten."""
        connection = self._connections.get(spec.server_id)
        if connection is None or connection.spec != spec or not connection.is_alive:
            return
        self._drop(spec.server_id)
        if not error.is_lost:
            await record(spec, error.report)

    def _drop(self, server_id: UUID) -> None:
        connection = self._connections.pop(server_id, None)
        if connection is not None:
            closing = spawn(connection.close(), name=f"mcp-close-{server_id}")
            self._closings.add(closing)
            closing.add_done_callback(self._closings.discard)

    async def tidy(self) -> None:
        """Close what is unused or out of date; remove files of deleted servers."""
        now = asyncio.get_running_loop().time()
        for server_id, connection in list(self._connections.items()):
            if connection.calls:
                continue
            is_old = now - connection.used_at > conf().mcp_idle_seconds
            if is_old or await _in_own_thread(connection_spec, server_id) != (
                connection.spec
            ):
                self._drop(server_id)
        if await asyncio.to_thread(_homes):
            await _in_own_thread(_remove_orphans, set(self._connections))

    async def close(self) -> None:
        for server_id in list(self._connections):
            self._drop(server_id)
        if self._closings:
            await asyncio.wait(set(self._closings))


async def record(spec: ConnectionSpec, report: Report) -> None:
    """A status that can't be written must not end a connection that works."""
    try:
        await _in_own_thread(record_report, spec.server_id, spec.generation, report)
    except Exception:
        logger.exception("MCP server %s: its status was not stored", spec.server_id)


def _homes() -> dict[UUID, Path]:
    root = mcp_homes_dir()
    folders = list(root.iterdir()) if root.is_dir() else []
    return {UUID(folder.name): folder for folder in folders}


def _remove_orphans(connected: set[UUID]) -> None:
    homes = _homes()
    for server_id in without_server(set(homes)) - connected:
        try:
            remove_tree(homes[server_id])
        except OSError:
            logger.warning("MCP server %s: files are left; tried again", server_id)


def _error(sentence: str) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=sentence)], is_error=True
    )


async def _in_own_thread(
    function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """In any thread but that of a turn: connections outlive whoever began them."""

    def work() -> T:
        try:
            return function(*args, **kwargs)
        finally:
            connections.close_all()

    return await asyncio.to_thread(work)
