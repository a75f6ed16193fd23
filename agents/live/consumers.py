"""Sockets: authorise, subscribe, send a snapshot, forward what is newer.

They go down only: whatever a browser sends is ignored. They do no work and wait for
nobody. An event only rings: all that is newer than the page is read from its rows, so
what happened meanwhile comes with it, and so does what didn't ring.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, cast
from urllib.parse import parse_qs
from uuid import UUID

from asgiref.sync import ThreadSensitiveContext
from channels.consumer import get_handler_name
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import connections

from agents.conf import conf
from agents.domain.queries.transcript import stored_text
from agents.events.bus import session_group, user_group
from agents.models import User

from . import frames, replay, watch
from .access import CloseCode, current_user, find_host, is_deleted
from .pages import HomePage, LivePage
from .refreshing import Refresher

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


class PageConsumer(ABC, AsyncWebsocketConsumer):
    """What both kinds of page share. Handlers and the poller take turns by a lock."""

    user: User

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turn = asyncio.Lock()
        self._checked_at = 0.0
        self._is_open = False
        self._news = ""
        self._surroundings = Refresher(
            self._refresh_if_allowed, name=f"refresh-{type(self).__name__}"
        )
        self._fingerprint: tuple[int, ...] = ()

    @property
    def login(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.scope)

    def _query(self, name: str) -> str:
        """A parameter of the socket's address; empty where it has none."""
        query = parse_qs(self.scope["query_string"].decode(errors="replace"))
        return query.get(name, [""])[0]

    @property
    def watched_session_id(self) -> UUID | None:
        return None

    @abstractmethod
    async def look(self, finding: watch.Finding) -> None:
        """The poller was here: fill in whatever did not ring."""

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Call the handler, and nothing else.

        Channels would close old database connections before each message, in the
        thread that all sockets share: every word would wait behind whatever is read
        there. `database_sync_to_async` closes them around each call anyway.
        """
        handler = getattr(self, get_handler_name(message), None)
        if handler is None:
            raise ValueError(f"no handler for {message['type']}")
        await handler(message)

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
        self._surroundings.stop()
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

    @abstractmethod
    async def _snapshot(self) -> None:
        """Send all that the page shows."""

    async def _still_allowed(self, *, at_once: bool = False) -> bool:
        """Check, unless it or the poller has just done so; closes the socket if not."""
        if not self._is_open:
            return False
        now = time.monotonic()
        if not at_once and now - self._checked_at < 2 * conf().watch_poll_seconds:
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
        if not self._is_open:
            return
        self._is_open = False
        watch.leave(self)
        await self.close(CloseCode.NO_LONGER_ALLOWED)

    async def user_event(self, message: dict[str, Any]) -> None:
        self._surroundings.ring()

    async def _refresh_if_allowed(self) -> None:
        if await self._still_allowed(at_once=True):
            await self._refresh()

    @abstractmethod
    async def _refresh(self) -> None:
        """Send what stands around the page, as it is now."""

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
    _host_id: UUID | None = None

    @property
    def session_id(self) -> UUID:
        session_id: UUID = self.scope["url_route"]["kwargs"]["session_id"]
        return session_id

    @property
    def watched_session_id(self) -> UUID | None:
        """A sub-agent's host, whose events its page shows; None before `connect`."""
        return self._host_id

    def _groups(self) -> list[str]:
        if self._host_id is None:
            return super()._groups()
        return [*super()._groups(), session_group(self._host_id)]

    async def _is_allowed(self) -> bool:
        host_id = await database_sync_to_async(find_host)(self.user, self.session_id)
        self._host_id = self._host_id or host_id
        return host_id is not None

    async def _snapshot(self) -> None:
        """What the page lacks, where it says what it has; else everything."""
        self.page = LivePage(
            user=self.user, session_id=self.session_id, host_id=self._host_id
        )
        since = _number(self._query("seq"))
        await self._send(await in_own_thread(replay.first_frame, self.page, since))

    async def _refuse(self) -> None:
        """A page whose session is gone says so, however it heard of it."""
        session_id = self.page.session_id
        if not self._is_open or not await self._read(is_deleted, session_id):
            await super()._refuse()
            return
        await self._send(frames.deleted_frame(session_id))
        self._is_open = False
        watch.leave(self)
        await self.close(CloseCode.DELETED)

    async def session_deleted(self, message: dict[str, Any]) -> None:
        async with self._turn:
            await self._refuse()

    async def session_event(self, message: dict[str, Any]) -> None:
        async with self._turn:
            if message["seq"] > self.page.seq and await self._still_allowed():
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

    async def look(self, finding: watch.Finding) -> None:
        async with self._turn:
            if not self._is_open:
                return
            if finding.user is None or finding.last_seq is None:
                await self._refuse()
                return
            self._checked_at = time.monotonic()
            if finding.last_seq > self.page.seq:
                await self._catch_up()
            for message_id, length in finding.streams.items():
                if self.page.streams.get(message_id, length) < length:
                    await self._grow(message_id, length, "")
            if self.page.is_queued:
                await self._send(await self._read(frames.queue_frame, self.page))
        if self._is_news(finding):
            self._surroundings.ring()

    async def _refresh(self) -> None:
        """Not in the socket's turn: the words of the page don't wait for the rail."""
        await self._send_news(await self._read(frames.rail_frame, self.page))
        async with self._turn:
            await self._send(await self._read(frames.family_frame, self.page))

    async def _catch_up(self) -> None:
        """Send what happened since the page's seq; where it is much, a snapshot."""
        await self._send(await self._read(replay.news, self.page))

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
        self.page = HomePage(user=self.user, view=self._query("view"))
        await self._send(await in_own_thread(frames.home_snapshot, self.page))

    async def look(self, finding: watch.Finding) -> None:
        async with self._turn:
            if not self._is_open:
                return
            if finding.user is None:
                await self._refuse()
            elif self._is_news(finding):
                self._surroundings.ring()

    async def _refresh(self) -> None:
        async with self._turn:
            self.page.user = self.user
            await self._send_news(
                await database_sync_to_async(frames.home_frame)(self.page)
            )


class NowhereConsumer(AsyncWebsocketConsumer):
    """Every other path: closed, as what doesn't exist."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(CloseCode.NOT_FOUND)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= 18 else None
