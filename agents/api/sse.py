"""Server-sent events: the wire format of a feed, with ids to go on from."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator

from django.core.serializers.json import DjangoJSONEncoder
from django.http import StreamingHttpResponse

from agents.conf import conf

from .feed import AgenticEvent

RETRY_MS = 1000
HEARTBEAT = ": still here\n\n"


def stream_response(
    events: AsyncIterator[AgenticEvent | None],
) -> StreamingHttpResponse:
    response = StreamingHttpResponse(
        encode(events), content_type="text/event-stream; charset=utf-8"
    )
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"  # nginx would hold it back
    return response


async def encode(events: AsyncIterator[AgenticEvent | None]) -> AsyncIterator[str]:
    """A comment whenever nothing was sent for a while: dead connections show."""
    yield f"retry: {RETRY_MS}\n\n"
    sent_at = time.monotonic()
    try:
        async for event in events:
            if event is not None:
                yield format_event(event)
            elif time.monotonic() - sent_at >= conf().stream_heartbeat_seconds:
                yield HEARTBEAT
            else:
                continue
            sent_at = time.monotonic()
    finally:
        # Ends its listening now, and not whenever it is collected.
        if hasattr(events, "aclose"):
            await events.aclose()


def format_event(event: AgenticEvent) -> str:
    """Only durable events have an id, so a reconnect goes on after the last of them."""
    data = json.dumps(event.as_json(), cls=DjangoJSONEncoder, ensure_ascii=False)
    name = f"id: {event.seq}\n" if event.seq is not None else ""
    # JSON has no line ends of its own, but SSE would also split at a carriage return.
    return f"{name}event: {event.type}\ndata: {data}\n\n"
