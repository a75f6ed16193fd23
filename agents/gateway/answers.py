"""What the CLI gets: a started answer, or an error in the Messages API's shape."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .headers import Headers

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
# The CLI heeds this (measured): a 401 ends after one call instead of a row of tries.
DO_NOT_RETRY = ("x-should-retry", "false")


def error_body(status: int, message: str) -> bytes:
    kind = _ERROR_TYPES.get(status, "api_error")
    error = {"type": kind, "message": message}
    return json.dumps({"type": "error", "error": error}).encode("ascii")


class Answer:
    """One HTTP answer on its way to the CLI."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_started = False
        self.is_complete = False
        self.is_dropped = False

    async def start(self, status: int, headers: Headers) -> None:
        self.has_started = True
        pairs = [(name.encode("latin-1"), v.encode("latin-1")) for name, v in headers]
        await self._send(
            {"type": "http.response.start", "status": status, "headers": pairs}
        )

    async def write(self, body: bytes) -> None:
        await self._send(
            {"type": "http.response.body", "body": body, "more_body": True}
        )

    async def end(self, body: bytes = b"") -> None:
        self.is_complete = True
        await self._send({"type": "http.response.body", "body": body})

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        await self.start(status, [*headers, ("content-length", str(len(body)))])
        await self.end(body)

    async def error(
        self, status: int, message: str, headers: Headers | None = None
    ) -> None:
        content_type = ("content-type", "application/json")
        body = error_body(status, message)
        await self.whole(status, [*(headers or []), content_type], body)

    def drop(self) -> None:
        """Cut the connection after what was sent, as an upstream did or a stop does.

        ASGI has no word for this. Leaving the app has the same effect, but uvicorn
        logs it as the app's error, so its transport is closed where it can be had.
        """
        self.is_complete = self.is_dropped = True
        transport = getattr(getattr(self._send, "__self__", None), "transport", None)
        if transport is not None:
            transport.close()
