"""What one socket knows of the page at its other end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
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


class Position(NamedTuple):
    seq: int
    element_id: str


@dataclass(slots=True, kw_only=True)
class LivePage:
    """A session's page: which items it shows, and how much of each streamed text."""

    user: User
    session_id: UUID
    seq: int = 0
    oldest_seq: int = 0
    shown: dict[UUID, Position] = field(default_factory=dict)
    streams: dict[UUID, int] = field(default_factory=dict)
    """Of each message that streams: how many characters the page has."""
    elsewhere: set[UUID] = field(default_factory=set)
    """Messages that stream on a branch which the page does not show."""
    is_queued: bool = False

    def remember(self, item: Item) -> None:
        message = item.message
        self.shown[message.pk] = Position(message.seq, item.element_id)
        if message.is_streaming and item.tool is None:
            self.streams[message.pk] = len(message.text)
        else:
            self.streams.pop(message.pk, None)

    def has(self, item: Item) -> bool:
        """Whether the item is there, or on an older page that may have been loaded."""
        message = item.message
        return message.pk in self.shown or message.seq < self.oldest_seq

    def following(self, item: Item) -> Position | None:
        """The place before which a new one belongs; None at the end.

        Frames show rows as they are now: one that comes late may find a queued
        message delivered already, behind an answer that the page doesn't have yet.
        """
        seq = item.message.seq
        later = (place for place in self.shown.values() if place.seq > seq)
        return min(later, default=None)
