"""History: every session a person may see, searched over everything said in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    JSONField,
    OuterRef,
    QuerySet,
    When,
    Window,
)
from django.urls import reverse
from django.utils.safestring import SafeString

from agents.models import AgentSession, Message, Run, User
from agents.models.messages import MessageRole
from agents.rendering.dom import dom_id
from agents.rendering.snippets import mark_matches, snippet

from .queries.items import element_id
from .search.documents import searched_text
from .search.matchers import Matcher, find_matcher
from .search.scan import contains

PAGE_SIZE = 20
HITS_PER_SESSION = 3
_COLUMNS = (
    *("owner_id", "name", "status", "kind", "mode", "model", "cost_usd_micros"),
    *("cost_is_partial", "last_preview", "parent_session_id"),
    *("created_at", "updated_at", "closed_at"),
)

_HIT_COLUMNS = (
    *("session_id", "branch_id", "seq", "role", "text", "tool_name", "tool_use_id"),
    "created_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilters:
    """All that are given must hold; times are of a session's last change."""

    mode: str = ""
    model: str = ""
    """Part of the name of a model that was asked for or that answered."""
    status: str = ""
    kind: str = ""
    is_closed: bool | None = None
    since: datetime | None = None
    before: datetime | None = None
    min_cost_usd_micros: int | None = None
    max_cost_usd_micros: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A message in which the query occurs."""

    message: Message
    snippet: SafeString
    element_id: str

    @property
    def url(self) -> str:
        """The session's page with the message's branch chosen, at the message."""
        message = self.message
        place = urlencode({"branch": message.branch_id, "message": message.pk})
        page = reverse("session_detail", args=[message.session_id])
        return f"{page}?{place}#{self.element_id}"

    @property
    def role(self) -> str:
        return self.message.get_role_display()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    session: AgentSession
    name: SafeString
    hits: Sequence[Hit] = ()
    has_more_hits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    sessions: list[HistoryEntry]
    total: int
    has_more: bool
    is_short: bool = False
    """Whether the query was too short for the index, so that not all was searched."""


def get_history(
    user: User,
    q: str = "",
    filters: HistoryFilters | None = None,
    *,
    limit: int = PAGE_SIZE,
    offset: int = 0,
) -> HistoryPage:
    """The sessions in which `q` occurs, last changed first; a few queries at most.

    Case-insensitive substring of a name or of any message of any branch. Without a
    query, sub-agents are listed only where `filters.kind` asks for them.
    """
    filters = filters or HistoryFilters()
    matcher = find_matcher(q, user)
    found = _filtered(user, filters)
    if matcher is not None:
        found = found.filter(matcher.sessions())
    elif not filters.kind:
        found = found.filter(parent_session=None)
    sessions, total = _page_of(found, limit, offset)
    return HistoryPage(
        sessions=_entries(sessions, matcher),
        total=total,
        has_more=offset + limit < total,
        is_short=matcher is not None and matcher.is_short,
    )


def search_messages(
    user: User, q: str, session: AgentSession, *, limit: int = PAGE_SIZE
) -> list[Hit]:
    """The newest messages of one session in which `q` occurs."""
    matcher = find_matcher(q, user)
    if matcher is None:
        return []
    visible = Message.objects.visible_to(user)
    return _load_hits(matcher, visible, [session.pk], limit)


def build_search_text(session: AgentSession, max_len: int = 5000) -> str:
    """The name and what people and the agent said, at most `max_len` characters."""
    parts, length = [session.name], len(session.name)
    said = session.messages.filter(
        role__in=(MessageRole.USER, MessageRole.ASSISTANT), hidden=False
    )
    for text in said.values_list("text", flat=True).iterator(chunk_size=50):
        if length >= max_len:
            break
        parts.append(text[:max_len])
        length += len(text) + 1
    return "\n".join(parts)[:max_len]


def _filtered(user: User, filters: HistoryFilters) -> QuerySet[AgentSession]:
    conditions = {
        "mode": filters.mode,
        "status": filters.status,
        "kind": filters.kind,
        "updated_at__gte": filters.since,
        "updated_at__lt": filters.before,
        "cost_usd_micros__gte": filters.min_cost_usd_micros,
        "cost_usd_micros__lte": filters.max_cost_usd_micros,
    }
    given = {key: value for key, value in conditions.items() if value not in ("", None)}
    found = AgentSession.objects.visible_to(user).filter(**given)
    if filters.is_closed is not None:
        found = found.filter(closed_at__isnull=not filters.is_closed)
    if filters.model:
        answered = Run.objects.filter(session=OuterRef("pk"))
        found = found.filter(
            contains("model", filters.model)
            | Exists(answered.filter(contains("model_actual", filters.model)))
        )
    return found


def _page_of(
    found: QuerySet[AgentSession], limit: int, offset: int
) -> tuple[list[AgentSession], int]:
    """One page and the count of all, for which the index is asked only once."""
    newest_first = found.order_by("-updated_at", "-pk")
    rows = newest_first.values_list("pk", Window(Count("*")))[offset : offset + limit]
    totals = dict(rows)
    if not totals:
        return [], found.count() if offset else 0
    sessions = AgentSession.objects.only(*_COLUMNS).in_bulk(list(totals))
    return [sessions[pk] for pk in totals if pk in sessions], max(totals.values())


def _entries(
    sessions: Sequence[AgentSession], matcher: Matcher | None
) -> list[HistoryEntry]:
    query = matcher.query if matcher else ""
    hits: dict[UUID, list[Hit]] = defaultdict(list)
    if matcher is not None:
        ids = [session.pk for session in sessions]
        one_more = HITS_PER_SESSION + 1  # tells that there are more
        for hit in _load_hits(matcher, Message.objects.all(), ids, one_more):
            hits[hit.message.session_id].append(hit)
    return [
        HistoryEntry(
            session=session,
            name=mark_matches(session.name, query),
            hits=hits[session.pk][:HITS_PER_SESSION],
            has_more_hits=len(hits[session.pk]) > HITS_PER_SESSION,
        )
        for session in sessions
    ]


def _load_hits(
    matcher: Matcher,
    messages: QuerySet[Message],
    session_ids: Iterable[UUID],
    per_session: int,
) -> list[Hit]:
    rows = (
        messages.filter(matcher.newest_hits(session_ids, per_session))
        .only(*_HIT_COLUMNS)
        .annotate(
            # Results may hold megabytes of images here, which nobody searches.
            call=Case(
                When(role=MessageRole.TOOL_CALL, then=F("content")),
                default=None,
                output_field=JSONField(),
            )
        )
        .order_by("session_id", "-seq")
    )
    # A few at a time: one text may have megabytes, and only a line of it stays.
    shown = [_Shown.of(row, matcher.query) for row in rows.iterator(chunk_size=4)]
    calls = _calls_of(shown)
    return [each.as_hit(calls) for each in shown]


@dataclass(frozen=True, slots=True)
class _Shown:
    message: Message
    snippet: SafeString

    @classmethod
    def of(cls, row: Any, query: str) -> _Shown:
        text = searched_text(row.role, row.text, row.call, row.tool_name)
        shown = cls(row, snippet(text, query))
        row.text = ""
        row.call = None
        return shown

    def as_hit(self, calls: dict[tuple[UUID, str], UUID]) -> Hit:
        """A result stands in its call's card, so the link goes there."""
        message = self.message
        key = (message.branch_id, message.tool_use_id)
        if message.role == MessageRole.TOOL_RESULT and key in calls:
            place = dom_id("tool", calls[key])
        else:
            place = element_id(message)
        return Hit(message=message, snippet=self.snippet, element_id=place)


def _calls_of(shown: Iterable[_Shown]) -> dict[tuple[UUID, str], UUID]:
    results = [
        each.message
        for each in shown
        if each.message.role == MessageRole.TOOL_RESULT and each.message.tool_use_id
    ]
    if not results:
        return {}
    calls = Message.objects.filter(
        session_id__in={row.session_id for row in results},
        tool_use_id__in={row.tool_use_id for row in results},
        role=MessageRole.TOOL_CALL,
    )
    rows = calls.order_by().values_list("branch_id", "tool_use_id", "pk")
    return {(branch_id, use_id): pk for branch_id, use_id, pk in rows}
