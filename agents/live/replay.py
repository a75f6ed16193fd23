"""What a page lacks, from the events since the last one that it shows.

A page that connects says up to which event it has everything. It is then given what
changed since, so that what was loaded and opened on it stays; only where that can't be
told, or is too much, all of it is replaced.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from agents.conf import conf
from agents.domain.queries.items import Item
from agents.domain.queries.sessions import fresh_session
from agents.domain.queries.transcript import load_transcript
from agents.events.vocabulary import MessageSaved, StreamStarted
from agents.models import SessionEvent

from . import frames
from .pages import LivePage


class Happened(NamedTuple):
    seq: int
    wire: str
    data: dict[str, Any]


def first_frame(page: LivePage, since: int | None) -> str:
    """What a page is sent when its socket opens.

    `since` is the seq that the page has; None: nothing that could be told.
    """
    html = None if since is None else _resume(page, since)
    if html is None:
        html = frames.session_snapshot(page)
    return html + frames.position_frame(page)


def news(page: LivePage) -> str:
    """What happened since the page's seq; where it is much, a snapshot.

    All of it in one frame: half of it would leave the page at no seq at all.
    """
    events = _events_since(page)
    if events is None:
        return frames.session_snapshot(page) + frames.position_frame(page)
    if not events:
        return ""
    return _show(page, events) + frames.position_frame(page)


def _show(page: LivePage, events: list[Happened], *also: str) -> str:
    html = frames.events_frame(
        page, [(event.wire, event.data) for event in events], *also
    )
    if events:
        page.seq = max(page.seq, events[-1].seq)
    return html


def _events_since(page: LivePage) -> list[Happened] | None:
    """None where they are too many, or not all there."""
    limit = conf().replay_max_events
    rows = SessionEvent.objects.filter(session_id=page.source_id, seq__gt=page.seq)
    found = rows.order_by("seq").values_list("seq", "type", "data")[: limit + 1]
    events = [Happened(*row) for row in found]
    is_whole = not events or events[-1].seq - page.seq == len(events)
    return events if is_whole and len(events) <= limit else None


def _resume(page: LivePage, since: int) -> str | None:
    """The frame that takes a page on from `since`; None where that can't be told.

    The rows are read before the events, so each row that came into being since has
    its event among them, and is put in as one that the page doesn't have.
    """
    session = fresh_session(page.session_id, page.user)
    if session is None or since > session.shown_seq:
        return None
    transcript = load_transcript(session, page.user)
    page.seq = since
    events = _events_since(page)
    if events is None or (not events and since < session.shown_seq):
        return None
    if frames.change_everything(event.wire for event in events):
        return None
    made = _made_by(events)
    known = [item for item in transcript.items if item.message.pk not in made]
    page.show_only(known, transcript.oldest_seq)
    _forget_states(page, known, events)
    streaming = [*page.streams]
    html = [_show(page, events, "tail")]
    # The page has some of their text, and nobody knows how much.
    html += [frames.item_frame(page, each) for each in streaming]
    return "".join([*html, frames.rail_frame(page)])


def _made_by(events: list[Happened]) -> set[UUID]:
    """The messages that came into being, or were delivered, by these events."""
    return {
        UUID(event.data["message_id"])
        for event in events
        if event.wire == StreamStarted.wire
        or (event.wire == MessageSaved.wire and event.data["is_new"])
    }


def _forget_states(page: LivePage, known: list[Item], events: list[Happened]) -> None:
    """Of calls that changed since, how they stood then is not known any more."""
    names = {
        event.data[name]
        for event in events
        for name in ("message_id", "tool_use_id")
        if event.data.get(name)
    }
    for item in known:
        message = item.message
        if {str(message.pk), message.tool_use_id} & names:
            page.shown[message.pk] = replace(page.shown[message.pk], state="")
