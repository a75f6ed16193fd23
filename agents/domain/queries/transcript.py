"""The transcript of a session, ready for templates, in a constant number of queries.

Frames and pages both use it, so that what is streamed equals what a reload shows. Big
columns are cut by the database: a page never reads a 5 MB tool result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.db.models import Case, F, Q, TextField, When
from django.db.models.functions import Cast, Length, Substr

from agents.conf import conf
from agents.models import AgentSession, Message, User
from agents.models.messages import MessageQuerySet, MessageRole
from agents.rendering.tool_calls import ToolResult, ToolView, tool_view

from .approvals import ApprovalCard, may_answer, refusal_in
from .branches import Navigator, Stretch, lineage, load_navigators, within
from .children import Child, load_children_of_calls, starts_session
from .groups import Single, ToolGroup, foldable_name, load_entries
from .items import Item

MAX_RUN = 200  # calls in a row that a page begins with, however many they are
MAX_CONTENT_CHARACTERS = 4 * 1024 * 1024
MAX_CHILDREN = 300
MAX_COMPARED = 500
_MAX_DEPTH = 5
_PATH_FIELDS = {"file_path", "notebook_path", "path"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One page of a session's transcript, oldest item first."""

    items: tuple[Item, ...]
    entries: tuple[Single | ToolGroup, ...]
    """The same items as they are shown: longer runs of tool calls folded."""
    has_older: bool
    other_branch_id: UUID | None = None
    """Given where it is not the session's shown branch."""

    @property
    def oldest_seq(self) -> int:
        """Everything below is not on this page; 0 where the page begins the session."""
        return self.items[0].message.seq if self.has_older and self.items else 0


def load_transcript(
    session: AgentSession,
    user: User,
    *,
    before_seq: int | None = None,
    limit: int | None = None,
) -> Transcript:
    """The newest page, or the page before `before_seq`."""
    limit = limit or conf().transcript_page_size
    rows = _top_level(session)
    if before_seq is not None:
        rows = rows.filter(seq__lt=before_seq)
    newest = list(rows.order_by("-seq")[: limit + 1])
    shown, has_older = newest[:limit], len(newest) > limit
    if has_older:
        shown, has_older = _with_whole_run(rows, shown)
    items = _build(session, user, shown[::-1])
    if session.is_sub_agent and not has_older:
        items = (*_prompt_of(session), *items)
    return Transcript(
        items=items,
        entries=tuple(load_entries(session, items)),
        has_older=has_older,
    )


def _with_whole_run(
    rows: MessageQuerySet, shown: list[Message]
) -> tuple[list[Message], bool]:
    """Add calls up to where their run begins: that is what a group is known by.

    Returns: the rows, newest first, and whether there are older ones.
    """
    if not _is_foldable(shown[-1]):
        return shown, True
    older = list(rows.filter(seq__lt=shown[-1].seq).order_by("-seq")[: MAX_RUN + 1])
    run = list(takewhile(_is_foldable, older[:MAX_RUN]))
    return [*shown, *run], len(run) < len(older)


def _is_foldable(message: Message) -> bool:
    is_call = message.role == MessageRole.TOOL_CALL
    return is_call and bool(foldable_name(message.tool_name))


def load_items(
    session: AgentSession, user: User, message_ids: Iterable[UUID]
) -> dict[UUID, Item]:
    """Several top-level items at once, by their messages' ids."""
    rows = _top_level(session)
    found = list(rows.filter(pk__in=list(message_ids)).order_by("seq"))
    return {item.message.pk: item for item in _build(session, user, found)}


def load_stretches(
    session: AgentSession, user: User, stretches: list[Stretch]
) -> tuple[Item, ...]:
    """Everything that some parts of branches show, oldest first; at most 500 items."""
    rows = _without_nested(_rows(stretches, session.pk)).order_by("seq")
    rows = rows[:MAX_COMPARED]
    return _Builder(session, user, stretches).build(list(rows))


def load_item(session: AgentSession, user: User, message_id: UUID) -> Item | None:
    """The top-level item that shows this message; None where nothing does."""
    rows = _rows_of(session)
    message = rows.filter(pk=message_id).first()
    for _ in range(_MAX_DEPTH):
        if message is None:
            return None
        if message.role == MessageRole.TOOL_RESULT:
            call_id = message.tool_use_id
        elif session.is_sub_agent and message.tool_use_id == _call_above(session):
            return next(iter(_prompt_of(session)), None)
        elif message.parent_tool_use_id == _call_above(session):
            return _build(session, user, [message])[0]
        else:
            call_id = message.parent_tool_use_id
        message = _calls(rows).filter(tool_use_id=call_id).first()
    return None


def load_tool_item(session: AgentSession, user: User, tool_use_id: str) -> Item | None:
    """The top-level item in which this tool call stands."""
    rows = Message.objects.filter(session_id=session.host_id, tool_use_id=tool_use_id)
    call_id = _calls(rows).values_list("pk", flat=True).first()
    return load_item(session, user, call_id) if call_id else None


def load_message(user: User, message_id: UUID) -> Item | None:
    """One message with all of its text, and a tool call with all of its result."""
    message = (
        Message.objects.visible_to(user)
        .filter(pk=message_id, hidden=False)
        .select_related("session", "author")
        .first()
    )
    if message is None:
        return None
    if message.role == MessageRole.TOOL_RESULT:
        call = _calls(message.session.messages.filter(tool_use_id=message.tool_use_id))
        return _whole(call.select_related("session").first() or message)
    return _whole(message)


def _whole(message: Message) -> Item:
    if message.role != MessageRole.TOOL_CALL:
        return Item(message=message, characters=len(message.text))
    result = message.session.messages.filter(
        tool_use_id=message.tool_use_id, role=MessageRole.TOOL_RESULT
    ).first()
    everything = 1 << 40
    view = _view(message.session, message, result, everything)
    return Item(message=message, result=result, tool=view)


def stored_text(message_id: UUID, start: int) -> str | None:
    """A streaming message's text from `start` on; None when it doesn't stream."""
    return (
        Message.objects.filter(pk=message_id, is_streaming=True)
        .annotate(rest=Substr("text", start + 1))
        .values_list("rest", flat=True)
        .first()
    )


def _stretches(session: AgentSession) -> list[Stretch]:
    return lineage(session.pk, session.active_branch_id)


def _rows_of(session: AgentSession) -> MessageQuerySet:
    """Of the shown branch; of a sub-agent its host's, on whichever branch it worked."""
    if session.is_sub_agent:
        return _rows(None, session.host_id)
    return _rows(_stretches(session), session.pk)


def _rows(stretches: list[Stretch] | None, session_id: UUID) -> MessageQuerySet:
    """The lineage's visible messages, their big columns cut; None: of all branches."""
    shown = Q() if stretches is None else within(stretches)
    limit = conf().message_preview_bytes + 1  # one more tells that there is more
    return (
        Message.objects.filter(shown, session_id=session_id, hidden=False)
        .exclude(queued_at__isnull=False, delivered_at=None)
        .defer("text", "rendered_html", "content", "attachments")
        .select_related("author")
        .annotate(
            text_length=Length("text"),
            # A streamed text only ever grows at its end, so it is never cut.
            shown_text=Case(
                When(is_streaming=True, then=F("text")),
                default=Substr("text", 1, limit),
                output_field=TextField(),
            ),
            shown_html=Case(
                When(text_length__lt=limit, then=F("rendered_html")), default=None
            ),
            content_length=Length(Cast("content", TextField())),
            shown_content=Case(
                When(content_length__lte=MAX_CONTENT_CHARACTERS, then=F("content")),
                default=None,
            ),
        )
    )


def _top_level(session: AgentSession) -> MessageQuerySet:
    return _without_nested(_rows_of(session), _call_above(session))


def _without_nested(rows: MessageQuerySet, call_above: str = "") -> MessageQuerySet:
    own = rows.filter(parent_tool_use_id=call_above)
    return own.exclude(role=MessageRole.TOOL_RESULT)


def _call_above(session: AgentSession) -> str:
    """The call whose rows the page begins with; "" for the main thread's."""
    return session.parent_tool_use_id if session.is_sub_agent else ""


def _prompt_of(session: AgentSession) -> list[Item]:
    """What a sub-agent was asked: in its host's rows it is its call's input."""
    call = _calls(_rows_of(session)).filter(tool_use_id=_call_above(session)).first()
    if call is None:
        return []
    tool_input = _fill(call).content.get("input")
    text = str(tool_input.get("prompt") or "") if isinstance(tool_input, dict) else ""
    limit = conf().message_preview_bytes
    prompt = Message(
        pk=call.pk,
        session=session,
        seq=call.seq,
        role=MessageRole.USER,
        text=text[:limit],
        created_at=call.created_at,
    )
    return [
        Item(
            message=prompt,
            is_cut=len(text) > limit,
            characters=len(text),
            said_by="Task",
        )
    ]


def _calls(rows: Any) -> Any:
    return rows.filter(role=MessageRole.TOOL_CALL)


def _fill(message: Message) -> Message:
    """Put the cut columns where templates look, so that nothing is fetched later."""
    row: Any = message
    message.text = row.shown_text or ""
    message.rendered_html = row.shown_html or ""
    message.content = row.shown_content or {}
    return message


def _lacks_content(message: Any) -> bool:
    """Whether its content is too big for a list of messages."""
    return bool(message.content_length > MAX_CONTENT_CHARACTERS)


def _build(
    session: AgentSession, user: User, rows: Sequence[Message]
) -> tuple[Item, ...]:
    return _Builder(session, user).build(rows)


class _Builder:
    """Puts results, approvals and sub-agents' messages to their tool calls."""

    def __init__(
        self,
        session: AgentSession,
        user: User,
        stretches: list[Stretch] | None = None,
    ) -> None:
        self._session = session
        self._user = user
        self._rows = (
            _rows_of(session) if stretches is None else _rows(stretches, session.pk)
        )
        self._results: dict[str, Message] = {}
        self._approvals: dict[str, ApprovalCard] = {}
        self._children: dict[str, list[Message]] = defaultdict(list)
        self._sessions: dict[str, Child] = {}
        self._can_operate = may_answer(user, session)
        self._navigators: dict[UUID, Navigator] = {}

    def build(self, rows: Sequence[Message]) -> tuple[Item, ...]:
        calls = [row for row in rows if row.role == MessageRole.TOOL_CALL]
        for child in self._load_children(calls):
            self._children[child.parent_tool_use_id].append(child)
            if child.role == MessageRole.TOOL_CALL:
                calls.append(child)
        self._load_facts([call.tool_use_id for call in calls])
        self._sessions = load_children_of_calls(
            self._session,
            self._user,
            [call.tool_use_id for call in calls if starts_session(call.tool_name)],
        )
        if any(row.role == MessageRole.USER for row in rows):
            self._navigators = load_navigators(self._session.pk)
        return self._items(rows, depth=0)

    def _load_children(self, calls: Iterable[Message]) -> list[Message]:
        """What the page's sub-agents said and did, at any depth; one query."""
        run_ids = {call.run_id for call in calls if call.run_id is not None}
        children = self._rows.filter(run_id__in=run_ids).exclude(
            Q(parent_tool_use_id="") | Q(role=MessageRole.TOOL_RESULT)
        )
        return list(children.order_by("-seq")[:MAX_CHILDREN])[::-1]

    def _load_facts(self, tool_use_ids: list[str]) -> None:
        results = self._rows.filter(
            role=MessageRole.TOOL_RESULT, tool_use_id__in=tool_use_ids
        )
        self._results = {row.tool_use_id: _fill(row) for row in results}
        approvals = self._session.host.approvals.filter(tool_use_id__in=tool_use_ids)
        self._approvals = {
            approval.tool_use_id: ApprovalCard(
                approval,
                self._can_operate,
                viewer=self._user,
                refusal=refusal_in(approval, self._results.get(approval.tool_use_id)),
            )
            for approval in approvals.select_related("decided_by")
        }

    def _items(self, rows: Iterable[Message], depth: int) -> tuple[Item, ...]:
        return tuple(self._item(_fill(row), depth) for row in rows)

    def _item(self, message: Message, depth: int) -> Item:
        limit = conf().message_preview_bytes
        characters: int = message.text_length  # type: ignore[attr-defined]  # annotated
        if message.role != MessageRole.TOOL_CALL:
            is_cut = characters > limit and not message.is_streaming
            if is_cut:
                message.text = message.text[:limit]
            return Item(
                message=message,
                is_cut=is_cut,
                characters=characters,
                navigator=self._navigators.get(message.pk),
                can_operate=self._can_operate,
            )
        result = self._results.get(message.tool_use_id)
        children = self._children.get(message.tool_use_id, [])
        return Item(
            message=message,
            tool=_view(self._session, message, result, limit),
            is_cut=any(_lacks_content(row) for row in (message, result) if row),
            result=result,
            approval=self._approvals.get(message.tool_use_id),
            children=self._items(children, depth + 1) if depth < _MAX_DEPTH else (),
            child=self._sessions.get(message.tool_use_id),
        )


def _view(
    session: AgentSession, call: Message, result: Message | None, max_bytes: int
) -> ToolView:
    shown = _tool_result(result) if result is not None else None
    tool_input = _with_short_paths(call.content.get("input", {}), session.cwd)
    return tool_view(call.tool_name, tool_input, shown, max_bytes=max_bytes)


def _with_short_paths(tool_input: Any, folder: str) -> Any:
    """Paths as people name them, from the session's folder on."""
    if not isinstance(tool_input, dict) or not folder:
        return tool_input
    shown = dict(tool_input)
    for name in _PATH_FIELDS & shown.keys():
        if isinstance(shown[name], str):
            shown[name] = shown[name].removeprefix(f"{folder}/")
    return shown


def _tool_result(row: Message) -> ToolResult:
    return ToolResult(
        text=row.text,
        is_error=row.is_error,
        structured=row.content.get("structured"),
        images=row.content.get("images") or [],
    )
