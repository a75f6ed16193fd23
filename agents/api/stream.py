"""A conversation as one call: say something, and get what happens, event by event.

The options are the session's settings, and stay until they are changed. What the SDK
has no option for is set by the gateway (`temperature`), or refused with the reason.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID

from channels.db import database_sync_to_async
from django.db import transaction

from agents.domain import sessions
from agents.domain.approvals import Decision, decide_approval
from agents.domain.modes import find_kept_mode
from agents.domain.permissions import offered_tools
from agents.errors import AlreadyDecidedError, InvalidInputError, NotAllowedError
from agents.events.vocabulary import (
    ApprovalRequested,
    MessageSaved,
    QueueUpdated,
    RunCompleted,
    SessionClosed,
    StreamDelta,
    StreamEnded,
    StreamStarted,
)
from agents.models import AgentSession, ApprovalRequest, Message, Run, User
from agents.models.messages import MessageRole

from .access import find_operable
from .feed import AgenticEvent, Feed
from .messages import send_once
from .options import given, naming, usable_provider, usd_micros

CHANNEL = "api"
MAX_STEPS = 200

ToolHandler: TypeAlias = Callable[[ApprovalRequest], Awaitable[Decision | None]]
"""Decides a call that waits for a person; None leaves it to people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """What `stream_agentic_chat` was asked, for one person."""

    user: User
    conversation_id: UUID | None
    messages: Sequence[dict[str, str]]
    system_prompt: str | None = None
    model: str | None = None
    provider: str | None = None
    temperature: float | None = None
    tools: Sequence[str | dict[str, Any]] | None = None
    max_steps: int | None = None
    max_budget: float | None = None
    effort: str | None = None
    client_message_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedChat:
    """A turn that was asked for: where it is, and from which event on it is told."""

    session_id: UUID
    message_id: UUID
    after: int


async def stream_agentic_chat(
    conversation_id: UUID | None,
    messages: Sequence[dict[str, str]],
    system_prompt: str | None = None,
    model: str | None = None,
    provider: str | None = None,
    temperature: float | None = None,
    tool_handler: ToolHandler | None = None,
    tools: Sequence[str | dict[str, Any]] | None = None,
    show_thinking: bool = True,
    max_steps: int | None = None,
    max_budget: float | None = None,
    effort: str | None = None,
    *,
    user: User,
) -> AsyncGenerator[AgenticEvent]:
    """Send `messages` to a conversation and yield what happens until its turn is over.

    Args:
        conversation_id: the session; None starts one.
        messages: one new message of the user's, as {"role": "user", "content": …}.
            What was said before is the conversation's own.
        tool_handler: asked about each call that policy has wait for a person.
        tools: names, to leave only these of what the session's mode offers.
        max_budget: of the session, in US dollars.
        user: as whom.

    Raises: InvalidInputError naming the option that can't be used, and why.
    """
    request = ChatRequest(
        user=user,
        conversation_id=conversation_id,
        messages=messages,
        system_prompt=system_prompt,
        model=model,
        provider=provider,
        temperature=temperature,
        tools=tools,
        max_steps=max_steps,
        max_budget=max_budget,
        effort=effort,
    )
    opened = await database_sync_to_async(open_chat)(request)
    refusal = _refusal_of(user, opened.session_id)
    turn = follow_turn(
        opened, refusal, user=user, tool_handler=tool_handler, thinks=show_thinking
    )
    async with aclosing(turn):
        async for event in turn:
            if event is not None:
                yield event


def _refusal_of(user: User, session_id: UUID) -> Callable[[], str]:
    def refusal() -> str:
        visible = AgentSession.objects.visible_to(user).filter(pk=session_id)
        return "" if visible.exists() else "not_allowed"

    return refusal


@transaction.atomic
def open_chat(request: ChatRequest) -> OpenedChat:
    """Bring the session to what was asked, and send it the message; both or neither.

    Raises: InvalidInputError, NotAllowedError, Http404.
    """
    text = _only_message(request.messages)
    if request.max_steps is not None and not 1 <= request.max_steps <= MAX_STEPS:
        raise InvalidInputError(
            f"A turn can have 1 to {MAX_STEPS} steps.", field="max_steps"
        )
    with naming("messages"):
        if request.conversation_id is None:
            return _start(request, text)
        session = find_operable(request.user, request.conversation_id)
        return _go_on(request, text, session)


def _only_message(messages: Sequence[dict[str, str]]) -> str:
    if [message.get("role") for message in messages] != ["user"]:
        raise InvalidInputError(
            "Send exactly one message, with the role “user”. The conversation keeps"
            " what was said before; a system prompt goes into `system_prompt`.",
            field="messages",
        )
    return str(messages[0].get("content", ""))


def _start(request: ChatRequest, text: str) -> OpenedChat:
    session = sessions.launch_agent(
        request.user,
        sessions.LaunchConfig(
            task=text,
            model=request.model or "",
            provider=usable_provider(request.user, request.provider),
            effort=request.effort or "",
            system_prompt=request.system_prompt or "",
            max_steps=request.max_steps,
            max_budget_usd_micros=usd_micros(request.max_budget),
            temperature=request.temperature,
            client_message_id=request.client_message_id,
        ),
    )
    _restrict_tools(session, request)
    first = session.messages.filter(role=MessageRole.USER).order_by("seq")[0]
    return OpenedChat(session_id=session.pk, message_id=first.pk, after=0)


def _go_on(request: ChatRequest, text: str, session: AgentSession) -> OpenedChat:
    wanted = given(
        system_prompt=request.system_prompt,
        model=request.model,
        provider=usable_provider(request.user, request.provider),
        effort=request.effort,
        max_steps=request.max_steps,
        max_budget_usd_micros=usd_micros(request.max_budget),
        temperature=request.temperature,
    )
    changed = {
        name: value for name, value in wanted.items() if getattr(session, name) != value
    }
    if changed:
        sessions.update_session(session, request.user, **changed)
    _restrict_tools(session, request)
    sent = send_once(session, request.user, text, request.client_message_id)
    after = _seq_before(session, sent)
    return OpenedChat(session_id=session.pk, message_id=sent.pk, after=after)


def _seq_before(session: AgentSession, message: Message) -> int:
    """A message that was sent before has its turn told again, from its beginning."""
    saved = session.events.filter(
        type=MessageSaved.wire, data__message_id=str(message.pk)
    ).first()
    assert saved is not None, "said when the message was written"
    return saved.seq - 1


def _restrict_tools(session: AgentSession, request: ChatRequest) -> None:
    """Only ever less than the session's mode offers."""
    if request.tools is None:
        return
    names = [tool for tool in request.tools if isinstance(tool, str)]
    if len(names) != len(request.tools):
        raise InvalidInputError(
            "Name tools that the session has. A tool of your own reaches an agent"
            " through an MCP server: the engine runs in a process of its own.",
            field="tools",
        )
    mode = find_kept_mode(session.owner, session.mode)
    if mode is not None:
        session.allowed_tools = mode.tools
    unknown = sorted(set(names) - offered_tools(session))
    if unknown:
        raise InvalidInputError(
            f"This session has no tool “{unknown[0]}”.", field="tools"
        )
    sessions.update_session(session, request.user, allowed_tools=sorted(set(names)))


@dataclass(slots=True)
class _Thoughts:
    """Knows which events are about thinking, for those who don't want them."""

    _ids: set[str] = field(default_factory=set)

    def are_in(self, event: AgenticEvent) -> bool:
        message_id = event.data.get("message_id", "")
        if event.type in (StreamStarted.wire, MessageSaved.wire):
            if event.data["role"] == MessageRole.THINKING:
                self._ids.add(message_id)
        elif event.message and event.message["role"] == MessageRole.THINKING:
            self._ids.add(message_id)
        is_text = event.type in (
            *(StreamStarted.wire, StreamDelta.wire, StreamEnded.wire),
            MessageSaved.wire,
        )
        return is_text and message_id in self._ids


async def follow_turn(
    opened: OpenedChat,
    refusal: Callable[[], str],
    *,
    user: User,
    tool_handler: ToolHandler | None = None,
    thinks: bool = True,
) -> AsyncGenerator[AgenticEvent | None]:
    """The session's events until the message's turn is over, or can't come any more."""
    thoughts = _Thoughts()
    feed = Feed(opened.session_id, opened.after, refusal).follow()
    async with aclosing(feed):
        async for event in feed:
            if event is None or thinks or not thoughts.are_in(event):
                yield event
            if event is None:
                continue
            if tool_handler is not None and event.type == ApprovalRequested.wire:
                await _ask(tool_handler, UUID(event.data["approval_id"]), user)
            if event.type in _MAY_END:
                is_over = await database_sync_to_async(_is_over)(opened, event)
                if is_over:
                    return


_MAY_END = (RunCompleted.wire, QueueUpdated.wire, SessionClosed.wire)


def _is_over(opened: OpenedChat, event: AgenticEvent) -> bool:
    """Its run has ended, or can't begin any more: it left the queue, or all closed."""
    runs = Run.objects.filter(trigger_message_id=opened.message_id)
    if event.type == RunCompleted.wire:
        return runs.filter(pk=event.data["run_id"]).exists()
    if event.type == SessionClosed.wire:
        return not runs.unfinished().exists()
    return not Message.objects.filter(pk=opened.message_id).exists()


async def _ask(handler: ToolHandler, approval_id: UUID, user: User) -> None:
    approval = await database_sync_to_async(_find_waiting)(approval_id)
    decision = await handler(approval) if approval is not None else None
    if approval is not None and decision is not None:
        await database_sync_to_async(_decide)(approval, user, decision)


def _find_waiting(approval_id: UUID) -> ApprovalRequest | None:
    waiting = ApprovalRequest.objects.pending().select_related("session")
    return waiting.filter(pk=approval_id).first()


def _decide(approval: ApprovalRequest, user: User, decision: Decision) -> None:
    """Raises: NotAllowedError."""
    answerable = ApprovalRequest.objects.answerable_by(user)
    if not answerable.filter(pk=approval.pk).exists():
        raise NotAllowedError("You may look at this session, but not decide in it.")
    with suppress(AlreadyDecidedError):  # a person was faster
        decide_approval(approval, user, decision)
