"""An upstream that says exactly the bytes a test wants, and shows what it was sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Handler = Callable[["Received", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Received:
    """One request as it came over the wire; header names in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the caller has closed the connection."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ScriptedUpstream:
    """Answers each request with the next handler; the last one serves the rest."""

    def __init__(self, *handlers: Handler) -> None:
        self.requests: list[Received] = []
        self.arrived = asyncio.Condition()
        self._handlers = list(handlers)
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> ScriptedUpstream:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    async def wait_for_requests(self, count: int) -> None:
        async with asyncio.timeout(20), self.arrived:
            await self.arrived.wait_for(lambda: len(self.requests) >= count)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._writers.add(writer)
        try:
            received = await _read(reader)
        except asyncio.IncompleteReadError:
            return writer.close()
        async with self.arrived:
            self.requests.append(received)
            self.arrived.notify_all()
        handlers = self._handlers
        handler = handlers.pop(0) if len(handlers) > 1 else handlers[0]
        watcher = asyncio.ensure_future(_watch(reader, received))
        try:
            await handler(received, writer)
        except ConnectionError:
            received.gone.set()
        watcher.cancel()
        writer.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    pairs = [line.split(": ", 1) for line in lines]
    headers = {name.lower(): value for name, value in pairs}
    method, target, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(method, target, headers, body)


async def _watch(reader: asyncio.StreamReader, received: Received) -> None:
    with contextlib.suppress(ConnectionError):
        await reader.read()
    received.gone.set()


def whole(
    body: bytes | dict[str, Any],
    *,
    status: int = 200,
    content_type: str = "application/json",
    **headers: str,
) -> Handler:
    """A complete answer."""
    content = json.dumps(body).encode() if isinstance(body, dict) else body

    async def handler(_: Received, writer: asyncio.StreamWriter) -> None:
        lines = [
            f"HTTP/1.1 {status} X",
            f"content-type: {content_type}",
            f"content-length: {len(content)}",
            "connection: close",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
        await writer.drain()

    return handler


def stream(*parts: bytes | asyncio.Event, ends: bool = True) -> Handler:
    """A streamed answer in these chunks; an event in between is waited for.

    Without `ends` the connection is closed before the last chunk is announced.
    """

    async def handler(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"request-id: req_1\r\nset-cookie: a=b\r\ntransfer-encoding: chunked\r\n"
            b"connection: close\r\n\r\n"
        )
        for part in parts:
            if isinstance(part, asyncio.Event):
                await part.wait()
                continue
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        if ends:
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    return handler


def sse(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def start(
    message_id: str = "msg_1", model: str = "claude-opus-5-5", **usage: Any
) -> bytes:
    usage = {"input_tokens": 11, "output_tokens": 1, **usage}
    message = {"id": message_id, "type": "message", "model": model, "usage": usage}
    return sse({"type": "message_start", "message": message})


def delta(text: str, index: int = 0) -> bytes:
    part = {"type": "text_delta", "text": text}
    return sse({"type": "content_block_delta", "index": index, "delta": part})


def end(**usage: Any) -> bytes:
    usage = {"output_tokens": 7, **usage}
    closing = {"stop_reason": "end_turn", "stop_sequence": None}
    return sse({"type": "message_delta", "delta": closing, "usage": usage}) + sse(
        {"type": "message_stop"}
    )


ANSWER = {
    "id": "msg_whole",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5-5",
    "content": [{"type": "text", "text": "Hi"}],
    "usage": {
        "input_tokens": 5,
        "output_tokens": 6,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 8,
    },
}
