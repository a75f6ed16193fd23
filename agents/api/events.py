"""A session's events as server-sent events, from any point on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Annotated, Any
from uuid import UUID

from channels.db import database_sync_to_async
from django.http import StreamingHttpResponse
from ninja import Header, Query, Router, Schema

from agents.domain import tokens
from agents.errors import InvalidInputError
from agents.models import AgentSession, ApiToken
from agents.models.tokens import TokenScope

from .access import find_session
from .auth import READ, ApiRequest
from .errors import REFUSALS
from .feed import AgenticEvent, Feed, load_events
from .messages import Seq
from .sse import check_open_streams, stream_response

router = Router(tags=["Events"])

STREAM: dict[str, Any] = {
    "responses": {
        200: {
            "description": "Events, until one side ends the connection",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
}


class EventFilter(Schema):
    after: Seq | None = None
    follow: bool = True


@router.get(
    "/sessions/{uuid:session_id}/events/",
    auth=READ,
    response=REFUSALS,
    url_name="session_events",
    operation_id="follow_events",
    summary="Follow a session",
    openapi_extra=STREAM,
)
def follow_events(
    request: ApiRequest,
    session_id: UUID,
    wanted: Query[EventFilter],
    last_event_id: Annotated[
        str | None, Header(alias="Last-Event-ID", pattern=r"^[0-9]{1,18}$")
    ] = None,
) -> StreamingHttpResponse:
    """All events after `Last-Event-ID`, or after `after`, or from the beginning.

    Durable events have an `id` and come once and in order. Texts come as
    `agent:stream_delta` events without an id: `text` belongs at `offset`. Whoever
    reconnects is sent what a text has so far, from offset 0; `agent:stream_end` brings
    the whole message. A comment is sent when nothing else was for some seconds. With
    `follow=false` the answer ends with the newest event.
    """
    check_open_streams(request.user)
    session = find_session(request.user, session_id)
    seq = int(last_event_id) if last_event_id is not None else wanted.after or 0
    if seq > session.shown_seq:
        raise InvalidInputError(
            f"The newest event is {session.shown_seq}; {seq} is none yet.",
            field="Last-Event-ID" if last_event_id is not None else "after",
        )
    if not wanted.follow:
        return stream_response(_until_now(session, seq), request.user)
    refusal = refusal_of(request.auth, TokenScope.READ, session.pk)
    return stream_response(Feed(session.host_id, seq, refusal).follow(), request.user)


async def _until_now(session: AgentSession, seq: int) -> AsyncGenerator[AgenticEvent]:
    while events := await database_sync_to_async(load_events)(session.host_id, seq):
        for event in events:
            yield event
            seq = event.seq or seq


def refusal_of(
    token: ApiToken, scope: TokenScope, session_id: UUID
) -> Callable[[], str]:
    """Why this token's listener may not go on; asked again and again."""

    def refusal() -> str:
        user = tokens.still_works(token.pk, scope)
        if user is None:
            return "token"
        if AgentSession.objects.visible_to(user).filter(pk=session_id).exists():
            return ""
        is_there = AgentSession.objects.filter(pk=session_id).exists()
        return "not_allowed" if is_there else "deleted"

    return refusal
