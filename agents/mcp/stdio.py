"""A program that speaks MCP over its standard streams, as a transport of the client.

Unlike the `mcp` package's own it bounds what a program may send: lines have a largest
length, a flood of lines or of complaints is read slowly (the program waits then, not
the server), nothing of it is logged, and all its processes are gone at the end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from agents.tasks import spawn

MAX_LINE_BYTES = 16 * 1024 * 1024
TAIL_BYTES = 4 * 1024
_CHUNK_BYTES = 64 * 1024
_LINES_AT_ONCE = 50
_PAUSE_SECONDS = 0.01
# How long a program may take to leave by itself once its input has ended.
_LEAVE_SECONDS = 0.5

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]


@dataclass(frozen=True, slots=True)
class Program:
    """What to start, and how to end it with all that it started."""

    command: tuple[str, ...]
    end: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Complaints:
    """The end of what a program wrote to its standard error, and how it ended."""

    tail: bytes = b""
    exit_status: int | None = None
    is_too_long: bool = False
    """Whether it was given up because of a message beyond all bounds."""

    def add(self, chunk: bytes) -> None:
        self.tail = (self.tail + chunk)[-TAIL_BYTES:]

    @property
    def text(self) -> str:
        return self.tail.decode(errors="replace").strip()


@dataclass(slots=True)
class StdioTransport:
    """One start of a program; `on_end` is called when it says nothing more."""

    program: Program
    on_end: Callable[[], None]
    complaints: Complaints = field(default_factory=Complaints)

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """Raises: OSError when it can't be started."""
        errors, errors_end = await _open_pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *self.program.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors_end,
                limit=MAX_LINE_BYTES,
                start_new_session=True,
            )
        except BaseException:
            errors.close()
            raise
        finally:
            os.close(errors_end)
        try:
            async with self._bridged(process, errors.reader) as streams:
                yield streams
        finally:
            errors.close()

    @asynccontextmanager
    async def _bridged(
        self, process: asyncio.subprocess.Process, errors: asyncio.StreamReader
    ) -> AsyncIterator[TransportStreams]:
        heard, said = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_say, to_write = anyio.create_memory_object_stream[SessionMessage](0)
        helpers = [
            spawn(self._hear(process, heard), name=f"mcp-hear-{process.pid}"),
            spawn(_say(process, to_write), name=f"mcp-say-{process.pid}"),
            spawn(self._note_complaints(errors), name=f"mcp-stderr-{process.pid}"),
        ]
        try:
            yield said, to_say
        finally:
            # Whoever cancels the owner meanwhile waits for this: no process is left.
            await asyncio.shield(spawn(self._finish(process), name="mcp-end"))
            for helper in helpers:
                helper.cancel()
            await asyncio.wait(helpers)
            for stream in (said, to_say, heard, to_write):
                stream.close()

    async def _hear(self, process: asyncio.subprocess.Process, heard: Incoming) -> None:
        assert process.stdout is not None
        lines = 0
        try:
            while line := await process.stdout.readline():
                message = _parse(line)
                if message is not None:
                    await heard.send(message)
                lines += 1
                if lines % _LINES_AT_ONCE == 0:
                    await asyncio.sleep(_PAUSE_SECONDS)
        except ValueError:
            self.complaints.is_too_long = True
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the connection is being closed
        finally:
            heard.close()
            self.on_end()

    async def _note_complaints(self, errors: asyncio.StreamReader) -> None:
        while chunk := await errors.read(_CHUNK_BYTES):
            self.complaints.add(chunk)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _finish(self, process: asyncio.subprocess.Process) -> None:
        """As MCP asks: its input ends, it may leave, then it is ended."""
        assert process.stdin is not None
        process.stdin.close()
        waiting = spawn(process.wait(), name=f"mcp-wait-{process.pid}")
        await asyncio.wait({waiting}, timeout=_LEAVE_SECONDS)
        await self.program.end()
        self.complaints.exit_status = await waiting


@dataclass(frozen=True, slots=True)
class _Pipe:
    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport

    def close(self) -> None:
        self.transport.close()


async def _open_pipe() -> tuple[_Pipe, int]:
    """For standard error alone: its buffer must not be as large as a message."""
    read_end, write_end = os.pipe()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_CHUNK_BYTES)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader),
        os.fdopen(read_end, "rb", buffering=0),
    )
    return _Pipe(reader, transport), write_end


def _parse(line: bytes) -> SessionMessage | None:
    """A line that is no message is dropped: some programs greet on standard output."""
    try:
        return SessionMessage(
            jsonrpc_message_adapter.validate_json(line, by_name=False)
        )
    except ValueError:
        return None


async def _say(process: asyncio.subprocess.Process, to_write: Outgoing) -> None:
    assert process.stdin is not None
    try:
        async for message in to_write:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            await process.stdin.drain()
    except (OSError, anyio.ClosedResourceError):
        return  # `_hear` notices that it has ended
