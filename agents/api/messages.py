"""Messages: what was said in a session, and saying something."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema, Status
from pydantic import Field

from agents.domain import messages
from agents.domain.queries.records import message_records
from agents.errors import AgentsError
from agents.models import AgentSession, Message, User

from .access import find_operable, find_session
from .auth import READ, WRITE, ApiRequest
from .errors import REFUSALS
from .options import Input, Task
from .records import MessageOut, message_record

router = Router(tags=["Messages"])

Seq = Annotated[int, Field(ge=0, le=2**63 - 1)]


class MessagePage(Schema):
    items: list[MessageOut]
    has_older: bool


class MessageFilter(Schema):
    before_seq: Seq | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class MessageIn(Input):
    text: Task
    client_message_id: UUID | None = None


class ReusedIdError(AgentsError):
    """The id belongs to a message with other words."""

    def __init__(self) -> None:
        super().__init__(
            "This client_message_id was used for another message of the session."
        )


@router.get(
    "/sessions/{uuid:session_id}/messages/",
    auth=READ,
    response={200: MessagePage, **REFUSALS},
    url_name="session_messages",
    operation_id="list_messages",
    summary="List messages",
)
def list_messages(
    request: ApiRequest, session_id: UUID, wanted: Query[MessageFilter]
) -> dict[str, Any]:
    """The newest of the shown branch, oldest first; before them by `before_seq`."""
    rows = message_records(find_session(request.user, session_id))
    if wanted.before_seq is not None:
        rows = rows.filter(seq__lt=wanted.before_seq)
    newest = list(rows.order_by("-seq")[: wanted.limit + 1])
    shown = newest[: wanted.limit][::-1]
    return {
        "items": [message_record(message) for message in shown],
        "has_older": len(newest) > wanted.limit,
    }


@router.post(
    "/sessions/{uuid:session_id}/messages/",
    auth=WRITE,
    response={201: MessageOut, **REFUSALS},
    url_name="session_messages",
    operation_id="send_message",
    summary="Send a message",
)
def send_message(request: ApiRequest, session_id: UUID, body: MessageIn) -> Status[Any]:
    """It starts a turn, or is queued while one is on.

    Sent again with the same `client_message_id` it is not said twice.
    """
    session = find_operable(request.user, session_id)
    sent = send_once(session, request.user, body.text, body.client_message_id)
    return Status(201, message_record(sent))


def send_once(
    session: AgentSession, author: User, text: str, client_message_id: UUID | None
) -> Message:
    """Raises: ReusedIdError, and what `send_message` raises."""
    sent = messages.send_message(
        session, author=author, text=text, client_message_id=client_message_id
    )
    if sent.text != messages.clean_prompt(text):
        raise ReusedIdError
    return sent


@router.get(
    "/messages/{uuid:message_id}/",
    auth=READ,
    response={200: MessageOut, **REFUSALS},
    url_name="message",
    operation_id="get_message",
    summary="Look at a message",
)
def get_message(request: ApiRequest, message_id: UUID) -> dict[str, Any]:
    """All of it, however long."""
    visible = Message.objects.visible_to(request.user).select_related("author")
    message = get_object_or_404(visible.filter(hidden=False), pk=message_id)
    return message_record(message, whole=True)
