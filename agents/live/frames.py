"""Every event as HTML: the pages' own partials, each root replacing its id.

A frame shows the rows as they are now, never the event's data, so that any frame may
come late, twice or after a newer one. Frames hold no CSRF token and no script.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.domain.queries.approvals import ApprovalCard, load_card, load_inbox
from agents.domain.queries.items import text_id
from agents.domain.queries.sessions import (
    SessionPage,
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
    StreamDelta,
    StreamEnded,
    StreamStarted,
    ToolDenied,
)
from agents.models import AgentSession
from agents.rendering.text import reveal_invisible

from . import placing
from .pages import HomePage, LivePage

Frame = Callable[[LivePage, AgentSession, dict[str, Any]], list[str]]

_PARTS = {
    "title": "agents/sessions/_title.html",
    "status": "agents/sessions/_status.html",
    "facts": "agents/sessions/_facts.html",
    "actions": "agents/sessions/_actions.html",
    "tail": "agents/sessions/_tail.html",
    "waiting": "agents/sessions/_waiting.html",
    "queue": "agents/messages/_queue.html",
    "closed": "agents/sessions/_closed.html",
    "menu": "agents/sessions/_menu.html",
}
_ALL = tuple(_PARTS)
_RUN = ("status", "facts", "actions", "tail", "waiting")


def session_snapshot(page: LivePage) -> str:
    """All that is live on a session's page; `page` then knows what that shows.

    The seq is read before the rows: what is newer than it will come as an event, and
    showing it twice does no harm.
    """
    session = fresh_session(page.session_id, page.user)
    if session is None:
        return ""
    page.seq = session.last_seq
    transcript = load_transcript(session, page.user)
    page.oldest_seq = transcript.oldest_seq
    page.shown.clear()
    page.elsewhere.clear()
    page.streams.clear()
    for item in transcript.items:
        page.remember(item)
    items = render_to_string(
        "agents/sessions/_transcript.html",
        {"transcript": transcript, "session": session, "oob": True},
    )
    return "".join([items, *_parts(page, session, *_ALL), *_rail(page)])


def event_frame(page: LivePage, wire: str, data: dict[str, Any]) -> str:
    """What one event changes on a session's page; empty for an unknown event."""
    frame = FRAMES.get(wire)
    session = fresh_session(page.session_id, page.user)
    if frame is None or session is None:
        return ""
    return "".join(frame(page, session, data))


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
    context = load_page(session, page.user)
    page.is_queued = context.queue_position is not None
    return [_part(context, name) for name in names]


def _part(context: SessionPage, name: str) -> str:
    return render_to_string(_PARTS[name], {"page": context, "oob": True})


def _changed(*names: str) -> Frame:
    return lambda page, session, data: _parts(page, session, *names)


def _message(page: LivePage, session: AgentSession, data: dict[str, Any]) -> list[str]:
    item = load_item(session, page.user, UUID(data["message_id"]))
    names = ("tail", "waiting", "queue")
    return [*placing.put(page, session, item), *_parts(page, session, *names)]


def _tool(page: LivePage, session: AgentSession, data: dict[str, Any]) -> list[str]:
    item = load_tool_item(session, page.user, data["tool_use_id"])
    return [*placing.put(page, session, item), *_parts(page, session, *_RUN)]


def _group(page: LivePage, session: AgentSession, data: dict[str, Any]) -> list[str]:
    return placing.put_group_name(page, session, UUID(data["group_id"]))


def _branch(page: LivePage, session: AgentSession, data: dict[str, Any]) -> list[str]:
    """Another line of the conversation: the whole transcript changes."""
    return [session_snapshot(page)]


def _deleted(page: LivePage, session: AgentSession, data: dict[str, Any]) -> list[str]:
    """No row tells of it: `consumers` sends `deleted_frame` once it is gone."""
    return []


def _delta(page: LivePage, session: AgentSession, data: dict[str, Any]) -> list[str]:
    """Deltas are no rows: `consumers` sends them by `delta_frame` as they come."""
    return []


FRAMES: dict[str, Frame] = {
    StatusChanged.wire: _changed(*_ALL[1:]),
    MessageSaved.wire: _message,
    CostUpdated.wire: _changed("facts", "tail"),
    StreamStarted.wire: _message,
    StreamDelta.wire: _delta,
    BranchCreated.wire: _branch,
    BranchSwitched.wire: _branch,
    StreamEnded.wire: _message,
    NameUpdated.wire: _changed("title"),
    GroupMetaUpdated.wire: _group,
    SessionClosed.wire: _changed(*_ALL[1:]),
    SessionResumed.wire: _changed(*_ALL[1:]),
    SessionDeleted.wire: _deleted,
    ApprovalRequested.wire: _tool,
    ApprovalResolved.wire: _tool,
    QueueUpdated.wire: _changed("queue", "tail"),
    ToolDenied.wire: _tool,
    Retrying.wire: _changed("tail"),
    RunCompleted.wire: _changed(*_RUN),
    RunFailed.wire: _changed(*_RUN),
}


def kinds_without_frame(events: dict[str, type[Event]]) -> set[str]:
    """Names of events that no page would show; a test wants none."""
    return set(events) - set(FRAMES)
