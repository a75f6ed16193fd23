"""What one socket knows of the page at its other end."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from agents.domain.queries.items import Item
from agents.models import User


@dataclass(slots=True, kw_only=True)
class HomePage:
    """A page without a transcript; `view` is "list", "inbox" or "" for the rail."""

    user: User
    view: str = ""
    cards: set[UUID] = field(default_factory=set)
    """Approvals whose cards stand in the inbox."""


@dataclass(slots=True, kw_only=True)
class LivePage:
    """A session's page: which items it shows, and how much of each streamed text."""

    user: User
    session_id: UUID
    seq: int = 0
    oldest_seq: int = 0
    shown: set[UUID] = field(default_factory=set)
    streams: dict[UUID, int] = field(default_factory=dict)
    """Of each message that streams: how many characters the page has."""
    is_queued: bool = False

    def remember(self, item: Item) -> None:
        message = item.message
        self.shown.add(message.pk)
        if message.is_streaming and item.tool is None:
            self.streams[message.pk] = len(message.text)
        else:
            self.streams.pop(message.pk, None)

    def has(self, item: Item) -> bool:
        """Whether the item is there, or on an older page that may have been loaded."""
        message = item.message
        return message.pk in self.shown or message.seq < self.oldest_seq
