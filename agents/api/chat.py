"""Chat: one message to a conversation, answered by what happens in its turn."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import StreamingHttpResponse
from ninja import Router
from pydantic import Field

from agents.errors import InvalidInputError
from agents.models.tokens import TokenScope

from .auth import CHAT, ApiRequest
from .errors import REFUSALS
from .events import STREAM, refusal_of
from .options import (
    Budget,
    Effort,
    Flag,
    Input,
    Name,
    Steps,
    Task,
    Temperature,
)
from .sse import check_open_streams, stream_response
from .stream import ChatRequest, follow_turn, open_chat

router = Router(tags=["Chat"])


class ChatMessage(Input):
    role: Literal["user", "assistant", "system"]
    content: Task


class ChatIn(Input):
    """Options that are left out stay as the conversation has them."""

    conversation_id: UUID | None = None
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=100)]
    system_prompt: str | None = None
    model: Name | None = None
    provider: Name | None = None
    temperature: Temperature | None = None
    tools: list[str | dict[str, Any]] | None = None
    tool_handler: dict[str, Any] | str | None = None
    show_thinking: Flag = True
    max_steps: Steps | None = None
    max_budget: Budget | None = None
    effort: Effort | None = None
    client_message_id: UUID | None = None


@router.post(
    "/chat/",
    auth=CHAT,
    response=REFUSALS,
    url_name="chat",
    operation_id="stream_agentic_chat",
    summary="Chat",
    openapi_extra=STREAM,
)
def stream_chat(request: ApiRequest, body: ChatIn) -> StreamingHttpResponse:
    """Send one message and get its turn as server-sent events.

    They are those of `/sessions/<id>/events/`: after a lost connection go on there with
    the last id. The agent works on meanwhile. Without `conversation_id` a session is
    started. A call that waits for a decision comes as `agent:approval_request`; decide
    it under `/approvals/`.
    """
    if body.tool_handler is not None:
        raise InvalidInputError(
            "A handler can’t be sent. Tool calls run behind the session’s own gate;"
            " decide those that wait under /api/approvals/.",
            field="tool_handler",
        )
    check_open_streams(request.user)
    values = body.dict(exclude={"tool_handler", "show_thinking", "messages"})
    messages = [{"role": each.role, "content": each.content} for each in body.messages]
    opened = open_chat(ChatRequest(user=request.user, messages=messages, **values))
    refusal = refusal_of(request.auth, TokenScope.READ, opened.session_id)
    turn = follow_turn(opened, refusal, user=request.user, thinks=body.show_thinking)
    return stream_response(turn, request.user)
