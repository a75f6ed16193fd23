"""Server-sent events: the wire format of a feed, with ids to go on from."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.http import StreamingHttpResponse

from agents.conf import conf
from agents.errors import AgentsError
from agents.models import User

from .feed import AgenticEvent

RETRY_MS = 1000
HEARTBEAT = ": still here\n\n"


_open: Counter[UUID] = Counter()
"""How many streams of each person this process has open; each asks the database."""


class TooManyStreamsError(AgentsError):
    status_code = 429

    def __init__(self) -> None:
        super().__init__("You have too many event streams open. Close some first.")


def stream_response(
    events: AsyncGenerator[AgenticEvent | None], user: User
) -> StreamingHttpResponse:
    response = StreamingHttpResponse(
        _counted(encode(events), user.pk),
        content_type="text/event-stream; charset=utf-8",
    )
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"  # nginx would hold it back
    return response


def check_open_streams(user: User) -> None:
    """Raises: TooManyStreamsError."""
    if _open[user.pk] >= conf().streams_per_user:
        raise TooManyStreamsError


async def _counted(chunks: AsyncGenerator[str], user_id: UUID) -> AsyncGenerator[str]:
    _open[user_id] += 1
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    finally:
        _open[user_id] -= 1
        if not _open[user_id]:
            del _open[user_id]


async def encode(events: AsyncGenerator[AgenticEvent | None]) -> AsyncGenerator[str]:
    """A comment whenever nothing was sent for a while: dead connections show."""
    yield f"retry: {RETRY_MS}\n\n"
    sent_at = time.monotonic()
    async with aclosing(events):  # ends its listening now, not when it is collected
        async for event in events:
            if event is not None:
                yield format_event(event)
            elif time.monotonic() - sent_at >= conf().stream_heartbeat_seconds:
                yield HEARTBEAT
            else:
                continue
            sent_at = time.monotonic()


def format_event(event: AgenticEvent) -> str:
    """Only durable events have an id, so a reconnect goes on after the last of them.

    Plain ASCII: many clients split lines at whatever Unicode calls the end of one.
    """
    data = json.dumps(event.as_json(), cls=DjangoJSONEncoder)
    name = f"id: {event.seq}\n" if event.seq is not None else ""
    return f"{name}event: {event.type}\ndata: {data}\n\n"
