"""The only door to the channel layer: publish facts, ring doorbells, listen.

The database is the truth. `publish_on_commit` writes the event's row in the caller's
transaction and rings after the commit; whoever hears re-reads, whoever misses it finds
the row at the next look. Channel layers deliver at most once and drop when full.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer  # noqa: TID251  the one place
from django.db import transaction
from django.db.models import F, Q
from redis.exceptions import RedisError

from agents.models import AgentSession, SessionEvent, Share
from agents.rendering.text import clean_json
from agents.tasks import spawn

from .vocabulary import Event, SessionDeleted, StreamDelta

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


def session_group(session_id: UUID) -> str:
    return f"session.{session_id}"


def user_group(user_id: UUID) -> str:
    return f"user.{user_id}"


def approval_group(approval_id: UUID) -> str:
    return f"approval.{approval_id}"


def control_group(session_id: UUID) -> str:
    return f"control.{session_id}"


def engine_group() -> str:
    """Every process that runs agents."""
    return "engine"


def publish_on_commit(event: Event) -> int:
    """Append the event's row now, ring its groups after the commit.

    Must be called inside `transaction.atomic`: the row and what it tells of are
    committed together, or not at all.

    Returns: the event's seq within its session.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("publish_on_commit needs a transaction")
    data = clean_json(event.data())
    seq = _append(event, data)
    message = {
        "type": "session.event",
        "session_id": str(event.session_id),
        "seq": seq,
        "wire": event.wire,
        "data": data,
    }
    ring_on_commit(session_group(event.session_id), message)
    if event.is_slim:
        _ring_people_on_commit(event)
    return seq


def publish_gone_on_commit(event: SessionDeleted) -> None:
    """Ring for a session that is about to go; call it before the row is deleted.

    There is nothing to read again: who misses it finds that the session is gone.
    """
    message = {"type": "session.deleted", "session_id": str(event.session_id)}
    ring_on_commit(session_group(event.session_id), message)
    _ring_people_on_commit(event)


def _append(event: Event, data: dict[str, Any]) -> int:
    sessions = AgentSession.objects.filter(pk=event.session_id)
    sessions.update(last_seq=F("last_seq") + 1)  # locks the row until the commit
    seq = sessions.values_list("last_seq", flat=True).get()
    SessionEvent.objects.create(
        session_id=event.session_id, seq=seq, type=event.wire, data=data
    )
    return seq


def _ring_people_on_commit(event: Event) -> None:
    message = {
        "type": "user.event",
        "session_id": str(event.session_id),
        "wire": event.wire,
    }
    for user_id in _people_of(event.session_id):
        ring_on_commit(user_group(user_id), message)


def _people_of(session_id: UUID) -> list[UUID]:
    """Its owner, and those with whom it, or a sub-agent's host, is shared."""
    session = AgentSession.objects.filter(pk=session_id)
    owner = session.values_list("owner_id")
    shared = Share.objects.filter(
        Q(session_id=session_id) | Q(session__in=session.values("host_session"))
    ).values_list("user_id")
    return [user_id for (user_id,) in owner.union(shared)]


def ring(group: str, message: dict[str, Any]) -> None:
    """Send from synchronous code; a lost doorbell is logged, never raised."""
    async_to_sync(send)(group, message)


def ring_on_commit(group: str, message: dict[str, Any]) -> None:
    """Ring after the commit.

    Robust: what was committed stands, and what else waits for the commit is done,
    whatever the bell does.
    """
    transaction.on_commit(lambda: ring(group, message), robust=True)


async def send(group: str, message: dict[str, Any]) -> None:
    """Ring a group; when the layer is down the truth is still in the database."""
    try:
        await layer().group_send(group, message)
    except (OSError, RedisError, TimeoutError):
        logger.warning("doorbell of %s was lost", group, exc_info=True)


async def publish_delta(event: StreamDelta) -> None:
    """Send streamed text to whoever watches now; it is not stored as an event."""
    message = {
        "type": "session.delta",
        "session_id": str(event.session_id),
        "message_id": str(event.message_id),
        "offset": event.offset,
        "text": event.text,
    }
    await send(session_group(event.session_id), message)


class Inbox:
    """The doorbell of one waiter: `wait` returns when it rang, or when time is up."""

    def __init__(self, channel: str | None) -> None:
        self._channel = channel
        self._ear: asyncio.Task[dict[str, Any]] | None = None

    async def wait(self, timeout_seconds: float) -> dict[str, Any] | None:
        """The next message, or None after `timeout_seconds` (then look yourself)."""
        if self._ear is None:
            self._ear = spawn(self._receive(), name=f"inbox-{self._channel}")
        # Kept when time is up: a cancelled `receive` leaves the Redis channel, and
        # what rings before the next one is lost.
        done, _ = await asyncio.wait({self._ear}, timeout=timeout_seconds)
        if not done:
            return None
        heard, self._ear = self._ear.result(), None
        return heard

    async def _receive(self) -> dict[str, Any]:
        if self._channel is None:
            await asyncio.Event().wait()  # deaf: the waiter's time runs out
        while True:
            try:
                return cast(dict[str, Any], await layer().receive(self._channel))
            except (OSError, RedisError):
                logger.warning("the channel layer is down", exc_info=True)
            await asyncio.sleep(RETRY_SECONDS)

    async def close(self) -> None:
        if self._ear is not None:
            self._ear.cancel()
            await asyncio.wait({self._ear})


@asynccontextmanager
async def listen(*groups: str) -> AsyncIterator[Inbox]:
    """Join `groups` for the length of the block; deaf while the layer is down."""
    channel = await _join(groups)
    inbox = Inbox(channel)
    try:
        yield inbox
    finally:
        if channel is not None:
            await _leave(groups, channel)
        await inbox.close()


async def _join(groups: tuple[str, ...]) -> str | None:
    try:
        channel: str = await layer().new_channel()
        for group in groups:
            await layer().group_add(group, channel)
    except (OSError, RedisError, TimeoutError):
        logger.warning("could not join %s", groups, exc_info=True)
        return None
    return channel


async def _leave(groups: tuple[str, ...], channel: str) -> None:
    try:
        for group in groups:
            await layer().group_discard(group, channel)
    except (OSError, RedisError, TimeoutError):
        logger.warning("could not leave %s", groups, exc_info=True)


def layer() -> Any:
    """The channel layer; its interface isn't typed."""
    found = get_channel_layer()
    if found is None:
        raise RuntimeError("CHANNEL_LAYERS is not configured")
    return found
