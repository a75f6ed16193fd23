"""One connection to a server: the task that owns it, and calls through it.

The owner connects, asks for the tools, reports, and disconnects, all in one task. Calls
come from other tasks; cancelling one of them never touches the owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import httpx2
from mcp import Client
from mcp.client._transport import TransportStreams
from mcp.client.session import IncomingMessage
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    CallToolResult,
    Implementation,
    Tool,
    ToolListChangedNotification,
)

from agents.conf import conf
from agents.domain.mcp_discovery import MAX_TOOLS, FoundTool, Report
from agents.domain.mcp_servers import ConnectionSpec
from agents.models.mcp_servers import McpStatus, McpTransport
from agents.tasks import spawn

from .failures import Symptoms, explain
from .sizes import PLAIN, bound
from .stdio import MAX_LINE_BYTES, Program, StdioTransport

CLIENT = Implementation(name="OpenSwarm", version="1")
_MAX_PAGES = 50
_CLOSE_SECONDS = 2

Reporter = Callable[[ConnectionSpec, Report], Awaitable[None]]


class Ways(Protocol):
    """What the layers above lend: jails for programs, guarded ways to addresses."""

    async def program(self, spec: ConnectionSpec) -> Program:
        """Raises: AgentsError where programs can't be started."""

    def http_client(self, *, may_be_private: bool) -> httpx2.AsyncClient: ...

    def is_blocked(self, error: BaseException) -> bool:
        """Whether `error` comes from an address that is not public."""


class ConnectionFailedError(Exception):
    """There is no connection, or there is none any longer; the report says why."""

    def __init__(self, report: Report, *, is_lost: bool = False) -> None:
        super().__init__(report.reason)
        self.report = report
        self.is_lost = is_lost
        """Whether the server forgot us before it looked at the call."""


class Connection:
    def __init__(self, spec: ConnectionSpec, ways: Ways, report: Reporter) -> None:
        self.spec = spec
        self.calls = 0
        self.used_at = asyncio.get_running_loop().time()
        self._ways = ways
        self._report = report
        self._symptoms = Symptoms()
        self._client: Client | None = None
        self._ready: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._bell = asyncio.Event()
        self._is_closing = False
        self._has_ended = False
        self._owner = spawn(self._own(), name=f"mcp-{spec.slug}")

    @property
    def is_alive(self) -> bool:
        return not self._owner.done() and not self._is_closing

    async def connected(self) -> Report:
        """Wait until the server has named its tools.

        Raises: ConnectionFailedError.
        """
        return await asyncio.shield(self._ready)

    async def call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Raises: ConnectionFailedError, TimeoutError; MCPError as the server says."""
        await self.connected()
        assert self._client is not None
        self.calls += 1
        try:
            async with asyncio.timeout(conf().mcp_call_seconds):
                return await self._client.call_tool(name, arguments)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                # The owner cleans up, and then it is known how a program ended.
                await asyncio.wait({self._owner}, timeout=_CLOSE_SECONDS)
                raise ConnectionFailedError(self._failure(error)) from error
            raise self._judged(error) from error
        finally:
            self.calls -= 1
            self.used_at = asyncio.get_running_loop().time()

    def _judged(self, error: MCPError) -> Exception:
        """An error that ends the connection, as against what a tool answers."""
        status, self._symptoms.http_status = self._symptoms.http_status, None
        # 404 after the session began: a server that was restarted has forgotten it.
        is_lost = status == 404 and error.code == INVALID_REQUEST
        if status in (401, 403) or is_lost:
            self._symptoms.http_status = status
            return ConnectionFailedError(self._failure(error), is_lost=is_lost)
        return error

    async def close(self) -> None:
        """Returns when it is closed and, of a program, no process is left.

        Bounded: an address that no longer answers is not waited for.
        """
        self._is_closing = True
        self._bell.set()
        await asyncio.wait({self._owner}, timeout=_CLOSE_SECONDS)
        if not self._owner.done():
            self._owner.cancel()
            await asyncio.wait({self._owner}, timeout=_CLOSE_SECONDS)

    async def _own(self) -> None:
        """Bounded by the server's start; afterwards it lasts until it is closed."""
        try:
            await self._connect_and_serve()
        except Exception as error:  # noqa: BLE001  a server's fault, reported as such
            if not self._is_closing:
                await self._tell(self._failure(error))
            elif not self._ready.done():
                self._fail(Report(McpStatus.ERROR, "The connection was closed."))
        except BaseException:
            self._fail(Report(McpStatus.ERROR, "The connection was closed."))
            raise

    async def _connect_and_serve(self) -> None:
        transport = await self._transport()
        client = Client(
            transport,
            cache=None,
            client_info=CLIENT,
            message_handler=self._hear,
        )
        limit = asyncio.timeout(conf().mcp_start_seconds)
        async with limit, client:
            self._client = client
            await self._tell(await _discover(client))
            limit.reschedule(None)
            while not await self._is_over():
                await self._tell(await _discover(client))

    async def _is_over(self) -> bool:
        """Wait for something to happen. Returns: whether that is the end."""
        await self._bell.wait()
        self._bell.clear()
        if self._is_closing:
            return True
        if self._has_ended:
            raise EOFError("the program ended")
        return False

    async def _tell(self, report: Report) -> None:
        await self._report(self.spec, report)
        if report.status != McpStatus.CONNECTED:
            self._fail(report)
        elif not self._ready.done():
            self._symptoms.http_status = None
            self._ready.set_result(report)

    def _fail(self, report: Report) -> None:
        if not self._ready.done():
            self._ready.set_exception(ConnectionFailedError(report))
            self._ready.exception()  # nobody may be waiting, and then it is no news

    def _failure(self, error: BaseException) -> Report:
        self._symptoms.is_blocked = self._ways.is_blocked(error)
        fault = explain(self.spec, error, self._symptoms)
        complaints = self._symptoms.complaints
        tail = complaints.text if complaints is not None else ""
        return Report(fault.status, fault.reason, stderr_tail=tail)

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._bell.set()

    # How to get there

    async def _transport(self) -> AbstractAsyncContextManager[TransportStreams]:
        match self.spec.transport:
            case McpTransport.STDIO:
                return await self._program()
            case McpTransport.SSE:
                return self._sse()
            case _:
                return self._http()

    async def _program(self) -> AbstractAsyncContextManager[TransportStreams]:
        program = await self._ways.program(self.spec)
        transport = StdioTransport(program, on_end=self._note_end)
        self._symptoms.complaints = transport.complaints
        return transport.streams()

    def _note_end(self) -> None:
        self._has_ended = True
        self._bell.set()

    @asynccontextmanager
    async def _http(self) -> AsyncIterator[TransportStreams]:
        client = self._http_client()
        async with (
            client,
            streamable_http_client(
                self.spec.url, http_client=client, max_sse_event_size=MAX_LINE_BYTES
            ) as streams,
        ):
            yield streams

    @asynccontextmanager
    async def _sse(self) -> AsyncIterator[TransportStreams]:
        async with sse_client(
            self.spec.url, httpx_client_factory=self._sse_client
        ) as streams:
            yield streams

    def _sse_client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        """For `sse_client`, which makes its client by itself."""
        return self._http_client()

    def _http_client(self) -> httpx2.AsyncClient:
        client = self._ways.http_client(may_be_private=self.spec.may_be_private)
        client.headers.update({**PLAIN, **dict(self.spec.secrets)})
        client.event_hooks = {"response": [self._note_answer]}
        return client

    async def _note_answer(self, response: httpx2.Response) -> None:
        """The transports turn refusals into errors that don't say which they were."""
        # A GET beside streamable HTTP is an offer that many servers turn down.
        counts = response.request.method == "POST" or self.spec.transport == "sse"
        if counts and response.status_code >= 400:
            self._symptoms.http_status = response.status_code
        bound(response, MAX_LINE_BYTES)


async def _discover(client: Client) -> Report:
    return Report(
        McpStatus.CONNECTED,
        instructions=client.instructions or "",
        tools=await _list_tools(client),
    )


async def _list_tools(client: Client) -> list[FoundTool]:
    found: list[FoundTool] = []
    cursor: str | None = None
    if client.server_capabilities.tools is None:
        return found
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found.extend(_found(tool) for tool in page.tools)
        cursor = page.next_cursor
        if not cursor or len(found) >= MAX_TOOLS:
            break
    return found


def _found(tool: Tool) -> FoundTool:
    """With the names of the wire: the rows speak JSON, whatever the package does."""
    wire = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
    return FoundTool(
        name=tool.name,
        description=tool.description or tool.title or "",
        input_schema=wire["inputSchema"],
        annotations=wire.get("annotations", {}),
    )
