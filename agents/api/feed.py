"""One session's events as they happen: durable ones once and in order, texts between.

The database is the truth and the channel layer a doorbell, as for pages: whatever
rings, all that is newer is read from its rows. What does not ring is found by a look
every few seconds, which also finds that somebody may not look any more.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from channels.db import database_sync_to_async

from agents.conf import conf
from agents.domain.queries import records as rows
from agents.domain.queries.transcript import stored_text
from agents.events.bus import Inbox, listen, session_group
from agents.events.vocabulary import (
    EVENTS,
    ApprovalRequested,
    Event,
    MessageSaved,
    StreamDelta,
    StreamEnded,
    StreamStarted,
)
from agents.models import SessionEvent

from .records import approval_record, message_record

P = ParamSpec("P")
T = TypeVar("T")

BATCH = 100
CLOSED = "closed"
_WITH_MESSAGE = (MessageSaved.wire, StreamEnded.wire)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgenticEvent:
    """A fact of the closed vocabulary, with the row that it is about.

    Only durable ones have a `seq`; a text's deltas have none. The last one of a stream
    that ends may be `closed`, whose data says why.
    """

    type: str
    session_id: UUID
    data: dict[str, Any]
    seq: int | None = None
    at: datetime | None = None
    message: dict[str, Any] | None = None
    """The message that was saved or has been written, as it is now."""
    approval: dict[str, Any] | None = None
    """What is asked, where a call waits for a decision."""

    @property
    def fact(self) -> Event | None:
        """The event as the site's own code knows it; None for `closed`."""
        kind = EVENTS.get(self.type)
        if kind is None:
            return None
        known = {
            each.name: _typed(str(each.type), self.data[each.name])
            for each in fields(kind)
            if each.name in self.data
        }
        return kind(session_id=self.session_id, **known)

    def as_json(self) -> dict[str, Any]:
        """What goes over the wire; nothing that is not there."""
        optional = {
            "seq": self.seq,
            "at": self.at,
            "message": self.message,
            "approval": self.approval,
        }
        return {
            "type": self.type,
            "session_id": self.session_id,
            "data": self.data,
            **{name: value for name, value in optional.items() if value is not None},
        }


def _typed(annotation: str, value: Any) -> Any:
    is_id = "UUID" in annotation and isinstance(value, str)
    return UUID(value) if is_id else value


def load_events(session_id: UUID, after: int, limit: int = BATCH) -> list[AgenticEvent]:
    """The durable events after this seq, with what they are about; three queries."""
    found = rows.events_after(session_id, after, limit)
    messages = rows.messages_by_id(_ids(found, "message_id", _WITH_MESSAGE))
    approvals = rows.approvals_by_id(
        _ids(found, "approval_id", (ApprovalRequested.wire,))
    )
    events = []
    for row in found:
        message = approval = None
        if row.type in _WITH_MESSAGE:
            message = messages.get(row.data["message_id"])
        if row.type == ApprovalRequested.wire:
            approval = approvals.get(row.data["approval_id"])
        events.append(
            AgenticEvent(
                type=row.type,
                session_id=session_id,
                data=row.data,
                seq=row.seq,
                at=row.created_at,
                message=message_record(message) if message else None,
                approval=approval_record(approval) if approval else None,
            )
        )
    return events


def _ids(found: list[SessionEvent], name: str, wires: tuple[str, ...]) -> set[str]:
    return {row.data[name] for row in found if row.type in wires}


async def _read(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    return await database_sync_to_async(function)(*args, **kwargs)


@dataclass(slots=True)
class Feed:
    """The events of one session, for one listener."""

    session_id: UUID
    """Whose rows: of a sub-agent its host's."""
    seq: int
    """Everything up to here is known."""
    refusal: Callable[[], str]
    """Asks the database; says why the listener may not listen any more, or nothing."""
    _sent: dict[UUID, int] = field(default_factory=dict)
    """How much of each text that is being written was sent."""
    _elsewhere: set[UUID] = field(default_factory=set)
    _checked_at: float = 0.0

    async def follow(self) -> AsyncGenerator[AgenticEvent | None]:
        """All events, for as long as somebody listens; None: nothing came for a while.

        Ends after `closed`, when the listener may not listen any more.
        """
        async with listen(session_group(self.session_id)) as inbox:
            for message_id in await _read(rows.open_streams, self.session_id):
                self._sent[message_id] = 0
            while True:
                reason = await self._refusal_now()
                if reason:
                    yield self._event(CLOSED, {"reason": reason})
                    return
                async for event in self._look():
                    yield event
                async for heard in self._hear(inbox):
                    yield heard

    async def _refusal_now(self) -> str:
        now = time.monotonic()
        if self._checked_at and now - self._checked_at < conf().stream_poll_seconds:
            return ""
        self._checked_at = now
        return await _read(self.refusal)

    async def _look(self) -> AsyncGenerator[AgenticEvent]:
        """What is newer than what is known, and all text so far."""
        while events := await _read(load_events, self.session_id, self.seq):
            for event in events:
                self._note(event)
                yield event
            if len(events) < BATCH:
                break
        for message_id in list(self._sent):
            delta = await self._grow(message_id)
            if delta is not None:
                yield delta

    def _note(self, event: AgenticEvent) -> None:
        assert event.seq is not None, "read from its row"
        self.seq = event.seq
        if event.type == StreamStarted.wire:
            self._sent.setdefault(UUID(event.data["message_id"]), 0)
        elif event.type == StreamEnded.wire:
            self._sent.pop(UUID(event.data["message_id"]), None)

    async def _hear(self, inbox: Inbox) -> AsyncGenerator[AgenticEvent | None]:
        """Wait for a ring that means something new; words need no look."""
        while True:
            heard = await inbox.wait(conf().stream_poll_seconds)
            if heard is None:
                yield None
                return
            if heard["type"] != "session.delta":
                if heard["type"] == "session.deleted":
                    self._checked_at = 0.0
                if heard.get("seq", self.seq + 1) > self.seq:
                    return
                continue
            message_id = UUID(heard["message_id"])
            if message_id in self._sent:
                delta = await self._grow(message_id, heard["offset"], heard["text"])
                if delta is not None:
                    yield delta
            elif message_id not in self._elsewhere:
                self._elsewhere.add(message_id)  # its start was lost, or it is over
                return
            if self._is_check_due():
                return

    def _is_check_due(self) -> bool:
        """Words that come without a pause must not put off the question who listens."""
        return time.monotonic() - self._checked_at > conf().stream_poll_seconds

    async def _grow(
        self, message_id: UUID, offset: int | None = None, text: str = ""
    ) -> AgenticEvent | None:
        """The rest of a text; what is before `offset` is in its row."""
        has = self._sent[message_id]
        if offset is None or offset > has:
            rest = await _read(stored_text, message_id, has)
            if rest is None:  # it ended meanwhile; its last event brings all of it
                return None
            overlap = has + len(rest) - (offset or 0)
            text = rest + text[max(overlap, 0) :]
        else:
            text = text[has - offset :]
        if not text:
            return None
        self._sent[message_id] = has + len(text)
        data = {"message_id": str(message_id), "offset": has, "text": text}
        return self._event(StreamDelta.wire, data)

    def _event(self, kind: str, data: dict[str, Any]) -> AgenticEvent:
        return AgenticEvent(type=kind, session_id=self.session_id, data=data)
