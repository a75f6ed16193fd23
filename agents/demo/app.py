"""The demo model as a plain ASGI app that speaks the Anthropic Messages API."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from agents.demo.script import Refusal, Reply
from agents.demo.side import side_reply
from agents.demo.state import DemoState, FailureKey, RecordedRequest, UsageEntry
from agents.demo.stream import (
    Collector,
    CutError,
    Message,
    encode,
)
from agents.demo.turn import Move, next_move
from agents.demo.usage import count_tokens, estimate_usage
from agents.tasks import spawn

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MODELS = {
    "claude-opus-5-5": "Demo Opus (scripted)",
    "claude-sonnet-5-5": "Demo Sonnet (scripted)",
    "claude-haiku-5-5": "Demo Haiku (scripted)",
}

_ERRORS = {
    400: ("invalid_request_error", "The request is invalid"),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low"),
    403: ("permission_error", "Your API key may not use this resource"),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your rate limit"),
    500: ("api_error", "Internal server error"),
    529: ("overloaded_error", "Overloaded"),
}


def create_app(state: DemoState) -> DemoApp:
    return DemoApp(state)


class DemoApp:
    """Callable as an ASGI app; `close()` hangs up on everybody."""

    def __init__(self, state: DemoState) -> None:
        self.state = state
        self._answers: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def close(self) -> None:
        """End every reply that is still being sent."""
        for answer in list(self._answers):
            answer.cancel()
        if self._answers:
            await asyncio.wait(list(self._answers))

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = await _read_body(receive)
        if raw is None:
            return
        request = _request(scope, raw)
        self.state.record(request)
        answer = spawn(self._answer(request, send), name="demo-answer")
        watcher = spawn(_until_disconnect(receive), name="demo-watcher")
        self._answers.add(answer)
        try:
            await asyncio.wait({answer, watcher}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                answer.cancel()
                await asyncio.wait({answer})
        finally:
            self._answers.discard(answer)
            watcher.cancel()
        if answer.cancelled() or not answer.exception():
            await self._leave(request, send, answer, receive)

    async def _leave(
        self,
        request: RecordedRequest,
        send: Send,
        answer: asyncio.Task[None],
        receive: Receive,
    ) -> None:
        if answer.cancelled():
            self.state.settle(request, "hung up")
            await _hang_up(send, receive)
        elif request.outcome == "cut":
            await _hang_up(send, receive)

    async def _answer(self, request: RecordedRequest, send: Send) -> None:
        method, path = request.method, request.path.rstrip("/")
        if method in ("GET", "HEAD") and not path.endswith("/v1/models"):
            return await self._json(request, send, 200, {"service": "demo model"})
        refusal = self._gatekeeper(request)
        if refusal is not None:
            return await self._refuse(request, send, refusal)
        if path.endswith("/v1/models"):
            return await self._json(request, send, 200, _models())
        if path.endswith("/v1/messages/count_tokens"):
            counted = {"input_tokens": count_tokens(request.body or {})}
            return await self._json(request, send, 200, counted)
        if path.endswith("/v1/messages"):
            return await self._message(request, send)
        return await self._refuse(request, send, Refusal(404))

    def _gatekeeper(self, request: RecordedRequest) -> Refusal | None:
        required = self.state.required_key
        if required is not None and request.key != required:
            return Refusal(401)
        if request.method == "POST" and request.body is None:
            return Refusal(400, "The body is not a JSON object")
        if request.path.rstrip("/").endswith("/v1/messages"):
            return self.state.take_ordered_refusal()
        return None

    async def _message(self, request: RecordedRequest, send: Send) -> None:
        body = request.body or {}
        side = side_reply(body)
        move = Move(side, ("side",)) if side is not None else self._next(request, body)
        if isinstance(move.step, Refusal):
            self.state.count_failure(move.failure_key)
            return await self._refuse(request, send, move.step)
        message = self._compose(request, move.step, move.failure_key)
        try:
            if body.get("stream"):
                await self._stream(request, send, message)
            else:
                await self._whole(request, send, message)
        except CutError:
            self.state.settle(request, "cut")

    def _next(self, request: RecordedRequest, body: dict[str, Any]) -> Move:
        caller = (request.session_id, request.agent_id)
        return next_move(body, caller=caller, failures_of=self.state.failures_of)

    def _compose(
        self, request: RecordedRequest, reply: Reply, failure_key: FailureKey
    ) -> Message:
        body = request.body or {}
        usage = estimate_usage(body, reply.usage)
        entry = UsageEntry(
            message_id=f"msg_demo{secrets.token_hex(10)}",
            model=str(body.get("model", "")),
            session_id=request.session_id,
            agent_id=request.agent_id,
            input_tokens=usage.input or 0,
            output_tokens=1,
            cache_read_input_tokens=usage.cache_read or 0,
            cache_creation_input_tokens=usage.cache_write or 0,
        )
        thinking = (body.get("thinking") or {}).get("type")
        return Message(
            reply=reply,
            model=entry.model,
            usage=entry,
            pass_gate=self.state.pass_gate,
            count_fault=lambda: self.state.count_failure(failure_key),
            words_per_second=self.state.words_per_second,
            with_thinking=thinking != "disabled",
        )

    async def _stream(
        self, request: RecordedRequest, send: Send, message: Message
    ) -> None:
        await send(_head(200, "text/event-stream"))
        self.state.log_usage(message.usage)
        async for event in message.events():
            await send(_part(encode(event)))
            if event["type"] == "message_delta":
                self.state.finish_usage(message.usage, message.output_tokens)
        self.state.settle(request, "refused" if message.broke else "answered")
        await send({"type": "http.response.body", "body": b""})

    async def _whole(
        self, request: RecordedRequest, send: Send, message: Message
    ) -> None:
        collector = Collector()
        async for event in message.events():
            collector.add(event)
        if message.broke:
            return await self._refuse(request, send, Refusal(529))
        self.state.log_usage(message.usage)
        self.state.finish_usage(message.usage, message.output_tokens)
        await self._json(request, send, 200, collector.message)

    async def _refuse(
        self, request: RecordedRequest, send: Send, refusal: Refusal
    ) -> None:
        if refusal.status == 0:
            self.state.settle(request, "cut")
            return
        kind, text = _ERRORS.get(refusal.status, ("api_error", "Error"))
        error = {"type": kind, "message": refusal.message or text}
        headers: dict[str, str] = {}
        if refusal.retry_after is not None:
            headers["retry-after"] = str(refusal.retry_after)
        content = {"type": "error", "error": error}
        await self._json(request, send, refusal.status, content, headers)

    async def _json(
        self,
        request: RecordedRequest,
        send: Send,
        status: int,
        content: object,
        headers: dict[str, str] | None = None,
    ) -> None:
        body = json.dumps(content).encode("ascii")
        length = {"content-length": str(len(body))}
        await send(_head(status, "application/json", {**(headers or {}), **length}))
        shown = b"" if request.method == "HEAD" else body
        # First: whoever reads the last byte may look at the record at once.
        self.state.settle(request, "answered" if status < 400 else "refused")
        await send({"type": "http.response.body", "body": shown})


def _models() -> dict[str, Any]:
    data = [
        {
            "type": "model",
            "id": name,
            "display_name": label,
            "created_at": "2026-01-01T00:00:00Z",
        }
        for name, label in MODELS.items()
    ]
    ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"], "has_more": False}
    return {"data": data, **ends}


def _request(scope: Scope, raw: bytes) -> RecordedRequest:
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        body = None
    return RecordedRequest(
        method=scope["method"],
        path=scope["path"],
        headers={
            name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]
        },
        body=body if isinstance(body, dict) else None,
    )


def _head(
    status: int, content_type: str, extra: dict[str, str] | None = None
) -> dict[str, Any]:
    headers = {
        "content-type": content_type,
        "cache-control": "no-cache",
        "request-id": f"req_demo{secrets.token_hex(8)}",
        **(extra or {}),
    }
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": pairs}


def _part(body: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": True}


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body; None if the caller left before sending it."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _hang_up(send: Send, receive: Receive) -> None:
    """Drop the connection in the middle of an answer.

    ASGI has no word for this. Leaving the app makes any server drop it, but uvicorn
    logs that as an error, so its transport is closed first where it can be reached.
    """
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
        await _until_disconnect(receive)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
