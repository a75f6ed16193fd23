"""The door: which calls come in, for which line, and what ends them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agents.tasks import spawn

from .answers import Answer, Receive, Scope, Send
from .call import run_call
from .exchange import COUNT_PATH, MESSAGES_PATH, Exchange, IncomingCall, Services
from .headers import Headers
from .lines import Line, Lines

SERVED_PATHS = (MESSAGES_PATH, COUNT_PATH)
MAX_BODY_BYTES = 64 * 1024 * 1024
HANG_UP_SECONDS = 1.0


class GatewayApp:
    """An ASGI app that lets two paths through, to who has a line."""

    def __init__(
        self, lines: Lines, services: Services, base_url_of: Callable[[Line], str]
    ) -> None:
        self._lines = lines
        self._services = services
        self._base_url_of = base_url_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = Answer(send)
        if scope["method"] != "POST" or scope["path"] not in SERVED_PATHS:
            return await answer.error(404, "Only the Messages API is served here.")
        headers = _read_headers(scope)
        line = self._lines.find(_token(headers))
        if line is None:
            return await answer.error(401, "This token is unknown or has ended.")
        body = await _read_body(receive)
        if body is None:
            return None
        if len(body) > MAX_BODY_BYTES:
            return await answer.error(413, "The request is too large.")
        query = scope["query_string"].decode("latin-1")
        asked = IncomingCall(scope["path"], query, headers, body)
        exchange = Exchange(
            line, asked, answer, self._services, self._base_url_of(line)
        )
        return await _run_until_hang_up(exchange, receive)


async def _run_until_hang_up(exchange: Exchange, receive: Receive) -> None:
    """Run a call until it ends, its caller hangs up or its line is closed.

    uvicorn tells nobody that a caller is gone unless somebody asks; without that, a
    stopped turn would go on costing.
    """
    line, answer = exchange.line, exchange.answer
    if line.is_closed:  # while its body came in
        return await answer.error(401, "This token has ended.")
    call = spawn(run_call(exchange), name="gateway-call")
    hang_up = spawn(_until_disconnect(receive), name="gateway-hang-up")
    line.calls.add(call)
    call.add_done_callback(line.calls.discard)
    try:
        await asyncio.wait({call, hang_up}, return_when=asyncio.FIRST_COMPLETED)
        call.cancel()
        await asyncio.wait({call})
        if not hang_up.done() and not answer.is_complete:
            await exchange.fail(503, "The agent of this call has been stopped.")
        if answer.is_dropped:
            await asyncio.wait({hang_up}, timeout=HANG_UP_SECONDS)
    finally:
        call.cancel()
        hang_up.cancel()
    return None


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read_body(receive: Receive) -> bytes | None:
    """The body, no more of it than just over the limit; None if the caller left."""
    parts: list[bytes] = []
    size = 0
    while size <= MAX_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if not message.get("more_body"):
            break
    return b"".join(parts)


def _read_headers(scope: Scope) -> Headers:
    return [(n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"]]


def _token(headers: Headers) -> str:
    """The line's token: a bearer token, or in the place of a key."""
    found = dict(headers)
    scheme, _, bearer = found.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and bearer:
        return bearer.strip()
    return found.get("x-api-key", "")
