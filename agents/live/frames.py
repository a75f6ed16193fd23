"""Every event as HTML: the pages' own partials, each root replacing its id.

A frame shows the rows as they are now, never the event's data, so that any frame may
come late, twice or after a newer one. Frames hold no CSRF token and no script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.domain.queries.approvals import ApprovalCard, load_card, load_inbox
from agents.domain.queries.children import load_family
from agents.domain.queries.items import Item, text_id
from agents.domain.queries.sessions import (
    SessionPage,
    current_seq,
    fresh_session,
    load_groups,
    load_page,
)
from agents.domain.queries.shell import rail
from agents.domain.queries.transcript import (
    load_item,
    load_tool_item,
    load_transcript,
)
from agents.events.vocabulary import (
    ApprovalRequested,
    ApprovalResolved,
    BranchCreated,
    BranchSwitched,
    BudgetWarned,
    Compacted,
    ContextCleared,
    ContextUpdated,
    Corrected,
    CostUpdated,
    Event,
    GroupMetaUpdated,
    MessageSaved,
    NameUpdated,
    QueueUpdated,
    Retrying,
    RunCompleted,
    RunFailed,
    SessionClosed,
    SessionDeleted,
    SessionResumed,
    StatusChanged,
    StepCompleted,
    StepFailed,
    StepStarted,
    StreamDelta,
    StreamEnded,
    StreamStarted,
    ToolDenied,
)
from agents.models import AgentSession
from agents.rendering.text import reveal_invisible

from . import placing
from .pages import HomePage, LivePage

Place = Callable[[LivePage, AgentSession, dict[str, Any]], list[str]]


@dataclass(frozen=True, slots=True)
class Frame:
    """What an event changes: the parts around the transcript, and a place in it."""

    parts: tuple[str, ...] = ()
    place: Place | None = None
    is_everything: bool = False


_PARTS = {
    "title": "agents/sessions/_title.html",
    "status": "agents/sessions/_status.html",
    "facts": "agents/sessions/_facts.html",
    "context": "agents/sessions/_context.html",
    "actions": "agents/sessions/_actions.html",
    "tail": "agents/sessions/_tail.html",
    "waiting": "agents/sessions/_waiting.html",
    "queue": "agents/messages/_queue.html",
    "closed": "agents/sessions/_closed.html",
    "menu": "agents/sessions/_menu.html",
    "children": "agents/sessions/_children.html",
}
# Facts hold the context, which also comes alone.
_ALL = tuple(name for name in _PARTS if name != "context")
_RUN = ("status", "facts", "actions", "tail", "waiting")
_FAMILY = ("facts", "tail", "waiting", "children")
_NOT_OF_SUB_AGENTS = {"queue", "closed", "menu"}
# What an event may name as its place in the transcript.
_NAMES = ("message_id", "tool_use_id", "group_id")


def session_snapshot(page: LivePage) -> str:
    """All that is live on a session's page; `page` then knows what that shows.

    The seq is read before the rows: what is newer than it will come as an event, and
    showing it twice does no harm.
    """
    session = fresh_session(page.session_id, page.user)
    if session is None:
        return ""
    page.seq = session.shown_seq
    transcript = load_transcript(session, page.user)
    page.exact_from = current_seq(session.host_id)
    page.show_only(transcript.items, transcript.oldest_seq)
    items = render_to_string(
        "agents/sessions/_transcript.html",
        {"transcript": transcript, "session": session, "oob": True},
    )
    return "".join([items, *_parts(page, session, *_ALL), *_rail(page)])


def event_frame(page: LivePage, wire: str, data: dict[str, Any]) -> str:
    """What one event changes on a session's page; empty for an unknown event."""
    return events_frame(page, [(wire, data)])


def events_frame(
    page: LivePage, events: Iterable[tuple[str, dict[str, Any]]], *also: str
) -> str:
    """What several events change, each thing once; `also` names further parts."""
    session = fresh_session(page.session_id, page.user)
    if session is None:
        return ""
    changes = _without_repetitions(events)
    if any(frame.is_everything for frame, _ in changes):
        return session_snapshot(page)
    html = [
        fragment
        for frame, data in changes
        if frame.place is not None
        for fragment in frame.place(page, session, data)
    ]
    wanted = {name for frame, _ in changes for name in frame.parts} | {*also}
    return "".join([*html, *_parts(page, session, *wanted)])


def _without_repetitions(
    events: Iterable[tuple[str, dict[str, Any]]],
) -> list[tuple[Frame, dict[str, Any]]]:
    """Of several events that one frame shows, the last: it shows the rows as they are.

    A turn that begins or ends tells of its status several times in a row.
    """
    last: dict[object, tuple[Frame, dict[str, Any]]] = {}
    for wire, data in events:
        frame = FRAMES.get(wire)
        if frame is None:
            continue
        shows = next((data[name] for name in _NAMES if data.get(name)), None)
        last.pop((frame, shows), None)
        last[frame, shows] = (frame, data)
    return list(last.values())


def change_everything(wires: Iterable[str]) -> bool:
    """Whether one of these events changes the whole transcript."""
    found = (FRAMES.get(wire) for wire in wires)
    return any(frame is not None and frame.is_everything for frame in found)


def item_frame(page: LivePage, message_id: UUID) -> str:
    """A message as its row is now."""
    session = fresh_session(page.session_id, page.user)
    if session is None:
        return ""
    return "".join(_put(page, session, {"message_id": message_id}))


def position_frame(page: LivePage) -> str:
    """Tells the page where it stands; it says so when its next socket opens."""
    context = {
        "session_id": page.session_id,
        "seq": page.position,
        "oob": True,
    }
    return render_to_string("agents/sessions/_position.html", context)


def deleted_frame(session_id: UUID) -> str:
    """In place of everything that the page has of a session that is gone."""
    return render_to_string("agents/frames/_deleted.html", {"session_id": session_id})


def delta_frame(message_id: UUID, text: str) -> str:
    """Append streamed text; the wrapper is dropped, whitespace is kept."""
    return placing.append(text_id(message_id), reveal_invisible(text, in_prose=True))


def home_snapshot(page: HomePage) -> str:
    """All that is live on a page without a transcript."""
    fragments = _rail(page)
    match page.view:
        case "list":
            fragments.append(_groups(page))
        case "inbox":
            cards = load_inbox(page.user)
            page.cards = {card.approval.pk for card in cards}
            context = {"cards": cards, "oob": True}
            fragments.append(render_to_string("agents/approvals/_inbox.html", context))
    return "".join(fragments)


def home_frame(page: HomePage) -> str:
    """What changed for this person; cards somebody types into are left alone."""
    fragments = _rail(page)
    match page.view:
        case "list":
            fragments.append(_groups(page))
        case "inbox":
            fragments += _inbox_changes(page)
    return "".join(fragments)


def rail_frame(page: LivePage) -> str:
    return "".join(_rail(page))


def family_frame(page: LivePage) -> str:
    """What changed about the sessions below; their events ring at other pages."""
    session = fresh_session(page.session_id, page.user)
    if session is None:
        return ""
    family = load_family(session, page.user)
    if family.signature == page.family:
        return ""
    page.family = family.signature
    links = [
        render_to_string("agents/sessions/_child.html", {"child": child, "oob": True})
        for child in family.children
        if child.session.pk in page.children
    ]
    return "".join([*links, *_parts(page, session, *_FAMILY)])


def queue_frame(page: LivePage) -> str:
    """The place in line moves with other people's runs, which ring nowhere here."""
    session = fresh_session(page.session_id, page.user)
    return "".join(_parts(page, session, "tail")) if session else ""


def _groups(page: HomePage) -> str:
    context = {
        "groups": load_groups(page.user),
        "may_start": page.user.may_start_agents,
        "viewer": page.user,
        "oob": True,
    }
    return render_to_string("agents/sessions/_groups.html", context)


def _inbox_changes(page: HomePage) -> list[str]:
    waiting = load_inbox(page.user)
    waiting_ids = {card.approval.pk for card in waiting}
    fragments: list[str] = [
        placing.append("inbox-items", _card(card))
        for card in waiting
        if card.approval.pk not in page.cards
    ]
    for approval_id in page.cards - waiting_ids:
        card = load_card(approval_id, page.user)
        if card is not None:
            fragments.append(_card(card))
    page.cards = waiting_ids
    context = {"count": len(waiting), "oob": True}
    fragments.append(render_to_string("agents/approvals/_inbox_empty.html", context))
    return fragments


def _card(card: ApprovalCard) -> SafeString:
    return render_to_string(
        "agents/approvals/_card.html", {"card": card, "in_inbox": True}
    )


def _rail(page: LivePage | HomePage) -> list[str]:
    entries = rail(page.user)
    current = page.session_id if isinstance(page, LivePage) else None
    shell = {
        "sessions_running": entries.running,
        "sessions_recent": entries.recent,
        "sessions_pinned": entries.pinned,
        "pending_count": entries.pending_count,
    }
    context = {"shell": shell, "current_session_id": current}
    return [render_to_string("agents/frames/_rail.html", context)]


def _parts(page: LivePage, session: AgentSession, *names: str) -> list[str]:
    """The named parts, in the order of the page."""
    if not names:
        return []
    context = load_page(session, page.user)
    page.is_queued = context.queue_position is not None
    shown = {*names}
    if session.is_sub_agent:
        # Its host's messages and requests are what its status follows.
        shown = (shown - _NOT_OF_SUB_AGENTS) | {"status"}
    if "facts" in shown:
        shown.discard("context")
    return [_part(context, name) for name in _PARTS if name in shown]


def _part(context: SessionPage, name: str) -> str:
    return render_to_string(_PARTS[name], {"page": context, "oob": True})


def _put(page: LivePage, session: AgentSession, data: dict[str, Any]) -> list[str]:
    item = load_item(session, page.user, UUID(str(data["message_id"])))
    return _put_item(page, session, item)


def _put_tool(page: LivePage, session: AgentSession, data: dict[str, Any]) -> list[str]:
    item = load_tool_item(session, page.user, data["tool_use_id"])
    return _put_item(page, session, item)


def _put_item(page: LivePage, session: AgentSession, item: Item | None) -> list[str]:
    """Put it in; one that is new on the page may be newer than the page's seq."""
    is_new = item is not None and item.message.pk not in page.shown
    html = placing.put(page, session, item)
    if is_new:
        page.exact_from = max(page.exact_from, current_seq(session.host_id))
    return html


def _name_group(
    page: LivePage, session: AgentSession, data: dict[str, Any]
) -> list[str]:
    return placing.put_group_name(page, session, UUID(data["group_id"]))


_MESSAGE = Frame(("tail", "waiting", "queue"), _put)
_TOOL = Frame(_RUN, _put_tool)
_MESSAGE_OF_TOOL = Frame(("tail",), _put_tool)
# Another line of the conversation: the whole transcript changes.
_BRANCH = Frame(is_everything=True)
# No row tells of it: `consumers` sends it by a frame of its own, as it comes.
_UNSTORED = Frame()

FRAMES: dict[str, Frame] = {
    StatusChanged.wire: Frame(_ALL[1:]),
    MessageSaved.wire: _MESSAGE,
    CostUpdated.wire: Frame(("facts", "tail", "children")),
    StreamStarted.wire: _MESSAGE,
    StreamDelta.wire: _UNSTORED,
    BranchCreated.wire: _BRANCH,
    BranchSwitched.wire: _BRANCH,
    StreamEnded.wire: _MESSAGE,
    NameUpdated.wire: Frame(("title",)),
    GroupMetaUpdated.wire: Frame(place=_name_group),
    SessionClosed.wire: Frame(_ALL[1:]),
    SessionResumed.wire: Frame(_ALL[1:]),
    SessionDeleted.wire: _UNSTORED,
    ApprovalRequested.wire: _TOOL,
    ApprovalResolved.wire: _TOOL,
    QueueUpdated.wire: Frame(("queue", "tail")),
    ContextUpdated.wire: Frame(("context",)),
    Compacted.wire: Frame(("context",), _put),
    # The line goes on: what the page shows of it stays.
    ContextCleared.wire: Frame(("context", "tail", "queue"), _put),
    ToolDenied.wire: _TOOL,
    Retrying.wire: Frame(("tail",)),
    StepStarted.wire: Frame(("tail",)),
    StepCompleted.wire: Frame(("tail",)),
    StepFailed.wire: _MESSAGE_OF_TOOL,
    Corrected.wire: _MESSAGE_OF_TOOL,
    BudgetWarned.wire: Frame(("facts", "tail")),
    RunCompleted.wire: Frame(_RUN),
    RunFailed.wire: Frame(_RUN),
}


def kinds_without_frame(events: dict[str, type[Event]]) -> set[str]:
    """Names of events that no page would show; a test wants none."""
    return set(events) - set(FRAMES)
