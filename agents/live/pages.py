"""What one socket knows of the page at its other end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from agents.domain.queries.groups import Entry, Place, fold, place_of
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
    host_id: UUID | None = None
    """Of a sub-agent's page: its host, whose rows and events it shows."""
    seq: int = 0
    exact_from: int = 0
    """From this seq on the page shows what was up to its seq, and nothing newer."""
    oldest_seq: int = 0
    shown: dict[UUID, Place] = field(default_factory=dict)
    streams: dict[UUID, int] = field(default_factory=dict)
    """Of each message that streams: how many characters the page has."""
    elsewhere: set[UUID] = field(default_factory=set)
    """Messages that stream on a branch which the page does not show."""
    is_queued: bool = False
    children: set[UUID] = field(default_factory=set)
    """Sessions that calls on the page started, each with a link below its call."""
    family: tuple[object, ...] = ()
    """What it says of the sessions below it, as it was last sent."""

    @property
    def source_id(self) -> UUID:
        return self.host_id or self.session_id

    @property
    def position(self) -> int | None:
        """Where the page can be taken up again; None while it may show more."""
        return self.seq if self.seq >= self.exact_from else None

    def show_only(self, items: Iterable[Item], oldest_seq: int) -> None:
        self.oldest_seq = oldest_seq
        self.shown.clear()
        self.elsewhere.clear()
        self.streams.clear()
        self.children.clear()
        for item in items:
            self.remember(item)

    def remember(self, item: Item) -> None:
        message = item.message
        self.shown[message.pk] = place_of(item)
        if message.is_streaming and item.tool is None:
            self.streams[message.pk] = len(message.text)
        else:
            self.streams.pop(message.pk, None)
        self._remember_children(item)

    def _remember_children(self, item: Item) -> None:
        if item.child is not None:
            self.children.add(item.child.session.pk)
        for nested in item.children:
            self._remember_children(nested)

    def is_older(self, item: Item) -> bool:
        """Whether it stands on an older page, which may have been loaded or not."""
        return item.message.seq < self.oldest_seq

    def entries(self) -> list[Entry]:
        """What the page shows, in order, folded as `fold` says.

        In the order of the rows as they were last seen: a frame that comes late may
        find a queued message delivered already, behind an answer that the page
        doesn't have yet.
        """
        return fold(sorted(self.shown.values(), key=lambda place: place.seq))
