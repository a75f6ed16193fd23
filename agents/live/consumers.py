"""Sockets: authorise, subscribe, send a snapshot, forward what is newer.

They go down only: whatever a browser sends is ignored. They do no work and wait for
nobody. A gap in the seqs is filled from the events' rows; so is what the poller finds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, cast
from urllib.parse import parse_qs
from uuid import UUID

from asgiref.sync import ThreadSensitiveContext
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import connections

from agents.conf import conf
from agents.domain.queries.transcript import stored_text
from agents.events.bus import session_group, user_group
from agents.events.vocabulary import StreamDelta
from agents.models import SessionEvent, User

from . import frames, watch
from .access import CloseCode, current_user, may_see
from .pages import HomePage, LivePage

MAX_REPLAY = 50

P = ParamSpec("P")
T = TypeVar("T")


async def in_own_thread(
    function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run a slow read in a thread and a connection of its own, both given back.

    Outside such a context every socket of the process shares one database thread.
    """
    async with ThreadSensitiveContext():
        return await database_sync_to_async(_then_close)(function, *args, **kwargs)


def _then_close(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return function(*args, **kwargs)
    finally:
        connections.close_all()


class PageConsumer(AsyncWebsocketConsumer):
    """What both kinds of page share. Handlers and the poller take turns by a lock."""

    user: User

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turn = asyncio.Lock()
        self._checked_at = 0.0
        self._is_open = False
        self._news = ""
        self._fingerprint: tuple[int, ...] = ()

    @property
    def login(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.scope)

    @property
    def watched_session_id(self) -> UUID | None:
        return None

    async def look(self, finding: watch.Finding) -> None:
        """The poller was here: fill in whatever did not ring."""
        raise NotImplementedError

    async def connect(self) -> None:
        # Closing before accepting would reach the browser as "try again" (1006).
        await self.accept()
        user = await database_sync_to_async(current_user)(self.login)
        if user is None:
            await self.close(CloseCode.NOT_SIGNED_IN)
            return
        self.user = user
        if not await self._is_allowed():
            await self.close(CloseCode.NOT_FOUND)
            return
        self._is_open = True
        self._checked_at = time.monotonic()
        async with self._turn:
            for group in self._groups():
                await self.channel_layer.group_add(group, self.channel_name)
            await self._snapshot()
        watch.join(self)

    async def disconnect(self, code: int) -> None:
        self._is_open = False
        watch.leave(self)
        if hasattr(self, "user"):
            for group in self._groups():
                await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Nothing goes up this way."""

    def _groups(self) -> list[str]:
        return [user_group(self.user.pk)]

    async def _is_allowed(self) -> bool:
        return True

    async def _snapshot(self) -> None:
        raise NotImplementedError

    async def _still_allowed(self, *, at_once: bool = False) -> bool:
        """Check again, at most every few seconds; closes the socket when not."""
        if not self._is_open:
            return False
        now = time.monotonic()
        if not at_once and now - self._checked_at < conf().watch_poll_seconds:
            return True
        self._checked_at = now
        user = await database_sync_to_async(current_user)(self.login)
        if user is not None:
            self.user = user
            if await self._is_allowed():
                return True
        await self._refuse()
        return False

    async def _refuse(self) -> None:
        self._is_open = False
        watch.leave(self)
        await self.close(CloseCode.NO_LONGER_ALLOWED)

    async def _send(self, html: str) -> None:
        if html and self._is_open:
            await self.send(text_data=html)

    def _is_news(self, finding: watch.Finding) -> bool:
        before, self._fingerprint = self._fingerprint, finding.fingerprint
        return before != finding.fingerprint

    async def _send_news(self, html: str) -> None:
        """The rail and what belongs to it, unless the page has just that."""
        if html != self._news:
            self._news = html
            await self._send(html)


class SessionConsumer(PageConsumer):
    """The page of one session: its transcript, its state, and the rail."""

    page: LivePage

    @property
    def watched_session_id(self) -> UUID | None:
        session_id: UUID = self.scope["url_route"]["kwargs"]["session_id"]
        return session_id

    def _groups(self) -> list[str]:
        assert self.watched_session_id is not None, "the route has it"
        return [*super()._groups(), session_group(self.watched_session_id)]

    async def _is_allowed(self) -> bool:
        assert self.watched_session_id is not None, "the route has it"
        return await database_sync_to_async(may_see)(self.user, self.watched_session_id)

    async def _snapshot(self) -> None:
        assert self.watched_session_id is not None, "the route has it"
        self.page = LivePage(user=self.user, session_id=self.watched_session_id)
        await self._send(await in_own_thread(frames.session_snapshot, self.page))

    async def session_event(self, message: dict[str, Any]) -> None:
        async with self._turn:
            if message["seq"] <= self.page.seq or not await self._still_allowed():
                return
            if message["seq"] == self.page.seq + 1:
                await self._forward(
                    [(message["seq"], message["wire"], message["data"])]
                )
            else:
                await self._catch_up()

    async def session_delta(self, message: dict[str, Any]) -> None:
        async with self._turn:
            message_id = UUID(message["message_id"])
            if not await self._still_allowed():
                return
            if message_id in self.page.elsewhere:
                return
            if message_id not in self.page.shown:  # its start was lost
                await self._catch_up()
                if message_id not in self.page.shown:
                    self.page.elsewhere.add(message_id)
            if message_id in self.page.streams:
                await self._grow(message_id, message["offset"], message["text"])

    async def user_event(self, message: dict[str, Any]) -> None:
        async with self._turn:
            if await self._still_allowed(at_once=True):
                await self._refresh_rail()

    async def look(self, finding: watch.Finding) -> None:
        async with self._turn:
            if not self._is_open:
                return
            if finding.user is None or finding.last_seq is None:
                await self._refuse()
                return
            if finding.last_seq > self.page.seq:
                await self._catch_up()
            for message_id, length in finding.streams.items():
                if self.page.streams.get(message_id, length) < length:
                    await self._grow(message_id, length, "")
            if self.page.is_queued:
                await self._send(await self._read(frames.queue_frame, self.page))
            if self._is_news(finding):
                await self._refresh_rail()

    async def _refresh_rail(self) -> None:
        await self._send_news(await self._read(frames.rail_frame, self.page))

    async def _catch_up(self) -> None:
        """Send what happened since the page's seq; where it is much, a snapshot."""
        missed = await self._read(_events_after, self.page.session_id, self.page.seq)
        if len(missed) > MAX_REPLAY:
            await self._snapshot()
        else:
            await self._forward(missed)

    async def _forward(self, events: list[tuple[int, str, dict[str, Any]]]) -> None:
        for seq, wire, data in events:
            if wire != StreamDelta.wire:
                await self._send(
                    await self._read(frames.event_frame, self.page, wire, data)
                )
            self.page.seq = seq

    async def _grow(self, message_id: UUID, offset: int, text: str) -> None:
        """Append what the page lacks; text from before `offset` comes from the row."""
        has = self.page.streams[message_id]
        if offset > has:
            rest = await self._read(stored_text, message_id, has)
            if rest is None:  # it ended meanwhile; its last event brings all of it
                return
            stored = has + len(rest)
            text = rest + text[max(stored - offset, 0) :]
        else:
            text = text[has - offset :]
        if text:
            self.page.streams[message_id] = has + len(text)
            await self._send(frames.delta_frame(message_id, text))

    async def _read(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await database_sync_to_async(function)(*args, **kwargs)


class HomeConsumer(PageConsumer):
    """Any other page; `?view=list` or `?view=inbox` names what it shows."""

    page: HomePage

    async def _snapshot(self) -> None:
        query = parse_qs(self.scope["query_string"].decode())
        self.page = HomePage(user=self.user, view=query.get("view", [""])[0])
        await self._send(await in_own_thread(frames.home_snapshot, self.page))

    async def user_event(self, message: dict[str, Any]) -> None:
        async with self._turn:
            if await self._still_allowed(at_once=True):
                await self._refresh()

    async def look(self, finding: watch.Finding) -> None:
        async with self._turn:
            if not self._is_open:
                return
            if finding.user is None:
                await self._refuse()
            elif self._is_news(finding):
                await self._refresh()

    async def _refresh(self) -> None:
        self.page.user = self.user
        await self._send_news(
            await database_sync_to_async(frames.home_frame)(self.page)
        )


class NowhereConsumer(AsyncWebsocketConsumer):
    """Every other path: closed, as what doesn't exist."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(CloseCode.NOT_FOUND)


def _events_after(session_id: UUID, seq: int) -> list[tuple[int, str, dict[str, Any]]]:
    rows = SessionEvent.objects.filter(session_id=session_id, seq__gt=seq)
    return list(
        rows.order_by("seq").values_list("seq", "type", "data")[: MAX_REPLAY + 1]
    )
