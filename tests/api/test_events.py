"""A session's events over SSE, on the real ASGI application."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.db import connections

from agents.domain import blocks, tokens
from agents.domain.messages import remove_queued_message
from agents.domain.sessions import delete_session, rename_session
from agents.events.bus import layer, publish_delta, session_group
from agents.events.vocabulary import StreamDelta
from agents.models import (
    AgentSession,
    ApiToken,
    Message,
    Run,
    SessionEvent,
    Share,
    User,
)
from agents.models.messages import MessageRole
from agents.models.sessions import ShareRight
from openswarm.asgi import http_application
from tests import factories

from .conftest import token_of

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")
PATIENCE_SECONDS = 20


async def in_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    return await sync_to_async(function)(*args, **kwargs)


class Listener:
    """One connection to a session's events."""

    def __init__(
        self, path: str, headers: dict[str, str], body: dict[str, Any] | None = None
    ) -> None:
        self._body = b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        self._application = ApplicationCommunicator(
            http_application,
            {
                "type": "http",
                "method": "POST" if body else "GET",
                "path": path,
                "query_string": query.encode(),
                "headers": [
                    (name.lower().encode(), value.encode())
                    for name, value in {
                        "host": "localhost",
                        "content-type": "application/json",
                        **headers,
                    }.items()
                ],
            },
        )
        self.status = 0
        self.headers: dict[str, str] = {}
        self._text = ""
        self._is_complete = False

    async def open(self) -> None:
        await self._application.send_input({"type": "http.request", "body": self._body})
        start = await self._application.receive_output(PATIENCE_SECONDS)
        self.status = start["status"]
        self.headers = {
            name.decode().lower(): value.decode() for name, value in start["headers"]
        }

    async def frame(self) -> dict[str, Any]:
        """The next event, or comment, as its lines say."""
        while "\n\n" not in self._text:
            assert await self._more(), "the answer has ended"
        text, _, self._text = self._text.partition("\n\n")
        pairs = (line.partition(":")[::2] for line in text.split("\n"))
        frame: dict[str, Any] = {name: value.strip() for name, value in pairs}
        if "data" in frame:
            frame["data"] = json.loads(frame["data"])
        return frame

    async def event(self) -> tuple[int | None, str, dict[str, Any]]:
        """The next event: its id, its type, and its data's data."""
        while "event" not in (frame := await self.frame()):
            pass
        seq = int(frame["id"]) if "id" in frame else None
        return seq, frame["event"], frame["data"]["data"]

    async def until(self, kind: str) -> tuple[int | None, str, dict[str, Any]]:
        while (event := await self.event())[1] != kind:
            pass
        return event

    async def rest(self) -> str:
        """Everything to the end, which the server has to make."""
        while await self._more():
            pass
        return self._text

    async def _more(self) -> bool:
        if self._is_complete:
            return False
        body = await self._application.receive_output(PATIENCE_SECONDS)
        self._text += body.get("body", b"").decode()
        self._is_complete = not body.get("more_body", False)
        return True

    async def hang_up(self) -> None:
        """Close the connection, and wait until the server has noticed."""
        await self._application.send_input({"type": "http.disconnect"})
        await self._application.wait(PATIENCE_SECONDS)

    async def end(self) -> None:
        """Let the server finish with it, whichever side has ended it."""
        if self._application.future.done():
            return
        if self._is_complete:
            await self._application.wait(PATIENCE_SECONDS)
        else:
            await self.hang_up()


Listen = Callable[..., Awaitable[Listener]]


@pytest.fixture
async def connect() -> AsyncIterator[Listen]:
    """Connections of somebody's program; they hang up when the test ends."""
    opened: list[Listener] = []

    async def connect(
        user: User,
        path: str,
        headers: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
    ) -> Listener:
        said = {"Authorization": f"Bearer {await in_thread(token_of, user)}"}
        listener = Listener(path, {**said, **(headers or {})}, body)
        await listener.open()
        opened.append(listener)
        return listener

    yield connect
    for listener in opened:
        await listener.end()
    await in_thread(connections.close_all)


@pytest.fixture
def listen(alice: User, connect: Listen) -> Listen:
    """Listen to a session as somebody, alice if not said."""

    async def listen(
        session: AgentSession, query: str = "", user: User = alice, **headers: str
    ) -> Listener:
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        return await connect(user, f"/api/sessions/{session.pk}/events/{query}", said)

    return listen


def seqs(session: AgentSession) -> list[int]:
    return list(
        SessionEvent.objects.filter(session=session).values_list("seq", flat=True)
    )


async def test_it_tells_what_was_and_what_comes_once_and_in_order(
    listen: Listen, session: AgentSession, run: Run
) -> None:
    before = await in_thread(seqs, session)
    listener = await listen(session)
    told = [await listener.event() for _ in before]

    await in_thread(rename_session, session, "Told live")
    seq, kind, data = await listener.event()

    assert [seq for seq, _, _ in told] == before == list(range(1, len(before) + 1))
    assert (seq, kind, data["name"]) == (
        before[-1] + 1,
        "agent:name_updated",
        "Told live",
    )
    assert listener.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert listener.headers["cache-control"] == "no-store"


async def test_words_come_between_and_the_end_brings_them_all(
    listen: Listen, session: AgentSession, run: Run
) -> None:
    listener = await listen(session, f"?after={(await in_thread(seqs, session))[-1]}")
    message = await in_thread(blocks.start_stream, run, role=MessageRole.ASSISTANT)
    await listener.until("agent:stream_start")

    for text in ("One", "One two"):  # each says all that is not in the row yet
        await say(session, message, 0, text)
    words = [await listener.event() for _ in range(2)]
    await in_thread(blocks.finish_stream, message.pk, text="One two three")
    seq, kind, data = await listener.event()

    assert [(seq, data["offset"], data["text"]) for seq, _, data in words] == [
        (None, 0, "One"),
        (None, 3, " two"),
    ]
    assert (kind, data["message_id"]) == ("agent:stream_end", str(message.pk))
    assert seq is not None


async def say(session: AgentSession, message: Message, offset: int, text: str) -> None:
    await publish_delta(
        StreamDelta(
            session_id=session.pk, message_id=message.pk, offset=offset, text=text
        )
    )


async def test_whoever_comes_back_gets_the_text_so_far_and_nothing_twice(
    listen: Listen, session: AgentSession, run: Run
) -> None:
    message = await in_thread(blocks.start_stream, run, role=MessageRole.ASSISTANT)
    await in_thread(blocks.save_stream, message.pk, "One two")
    known = (await in_thread(seqs, session))[-1]

    listener = await listen(session, Last_Event_ID=str(known))
    first = await listener.event()
    await say(session, message, 7, " three")
    second = await listener.event()

    assert first == (None, "agent:stream_delta", delta(message, 0, "One two"))
    assert second == (None, "agent:stream_delta", delta(message, 7, " three"))


def delta(message: Message, offset: int, text: str) -> dict[str, Any]:
    return {"message_id": str(message.pk), "offset": offset, "text": text}


async def test_what_did_not_ring_is_found_by_looking(
    listen: Listen, session: AgentSession, run: Run, override_conf: Any
) -> None:
    override_conf(stream_poll_seconds=0.02, stream_heartbeat_seconds=3600)
    listener = await listen(session)
    message = await in_thread(blocks.start_stream, run, role=MessageRole.ASSISTANT)
    await listener.until("agent:stream_start")
    layer().groups.pop(session_group(session.pk))  # from now on it is deaf

    await in_thread(blocks.save_stream, message.pk, "Unheard")
    words = await listener.event()
    await in_thread(rename_session, session, "Unheard too")
    renamed = await listener.event()

    assert words == (None, "agent:stream_delta", delta(message, 0, "Unheard"))
    assert renamed[2]["name"] == "Unheard too"


async def test_events_bring_what_they_are_about(
    listen: Listen, session: AgentSession, run: Run
) -> None:
    await in_thread(factories.say, run, "All of it")
    approval = await in_thread(factories.ask_approval, run)
    listener = await listen(session, "?follow=false")

    frames = []
    while "data" in (frame := await listener.frame()) or "retry" in frame:
        frames.append(frame)
        if frame.get("event") == "agent:approval_request":
            break
    about = {frame["event"]: frame["data"] for frame in frames if "event" in frame}

    assert about["agent:stream_end"]["message"]["text"] == "All of it"
    asked = about["agent:approval_request"]["approval"]
    assert (asked["id"], asked["tool_input"]) == (str(approval.pk), approval.tool_input)


async def test_without_following_the_answer_ends_by_itself(
    listen: Listen, session: AgentSession
) -> None:
    listener = await listen(session, "?follow=false")

    text = await listener.rest()

    ids = [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")]
    assert ids == await in_thread(seqs, session)


async def test_silence_is_filled_with_comments(
    listen: Listen, session: AgentSession, override_conf: Any
) -> None:
    override_conf(stream_poll_seconds=0.01, stream_heartbeat_seconds=0)
    known = (await in_thread(seqs, session))[-1]
    listener = await listen(session, f"?after={known}")

    assert await listener.frame() == {"retry": "1000"}
    assert await listener.frame() == {"": "still here"}


async def test_it_ends_when_the_token_is_revoked(
    listen: Listen, session: AgentSession, alice: User, override_conf: Any
) -> None:
    override_conf(stream_poll_seconds=0.02)
    listener = await listen(session)

    token = await in_thread(ApiToken.objects.get)
    await in_thread(tokens.revoke_token, token, alice)

    assert await listener.until("closed") == (None, "closed", {"reason": "token"})
    assert await listener.rest() == ""


async def test_it_ends_when_the_session_is_not_shared_any_more(
    listen: Listen, session: AgentSession, bob: User, override_conf: Any
) -> None:
    override_conf(stream_poll_seconds=0.02)
    share = await in_thread(
        Share.objects.create, session=session, user=bob, right=ShareRight.VIEW
    )
    listener = await listen(session, user=bob)

    await in_thread(share.delete)

    assert (await listener.until("closed"))[2] == {"reason": "not_allowed"}


async def test_it_ends_at_once_when_the_session_is_deleted(
    listen: Listen, session: AgentSession, alice: User, override_conf: Any
) -> None:
    override_conf(stream_poll_seconds=3600)  # only the bell can tell
    listener = await listen(session)
    for _ in await in_thread(seqs, session):
        await listener.event()

    await in_thread(delete_session, session, alice)

    assert (await listener.until("closed"))[2] == {"reason": "deleted"}


async def test_the_server_stops_listening_when_the_program_hangs_up(
    listen: Listen, session: AgentSession
) -> None:
    listener = await listen(session)
    await listener.event()
    assert session_group(session.pk) in layer().groups

    await listener.hang_up()

    assert session_group(session.pk) not in layer().groups


async def test_a_stranger_is_told_of_nothing(
    listen: Listen, session: AgentSession, charlie: User
) -> None:
    assert (await listen(session, user=charlie)).status == 404
    assert (await listen(AgentSession(pk=uuid4()))).status == 404


@pytest.mark.parametrize("wrong", ["99999", "-1", "x", "1" * 30])
async def test_an_id_that_is_none_is_refused_with_the_reason(
    listen: Listen, session: AgentSession, wrong: str
) -> None:
    listener = await listen(session, Last_Event_ID=wrong)

    assert listener.status == 422
    [field] = json.loads(await listener.rest())["error"]["fields"]
    assert field["field"] == "Last-Event-ID"


async def test_a_person_has_so_many_streams_and_no_more(
    listen: Listen, session: AgentSession, override_conf: Any
) -> None:
    override_conf(streams_per_user=2)
    first, second = [await listen(session) for _ in range(2)]
    for each in (first, second):
        await each.event()

    refused = await listen(session)
    await first.hang_up()
    admitted = await listen(session)

    assert (refused.status, admitted.status) == (429, 200)


async def test_a_chat_is_one_message_and_its_turn(
    connect: Listen, alice: User, session: AgentSession, run: Run
) -> None:
    """It waits for the turn that is on; sent again, it is told again."""
    body = {
        "conversation_id": str(session.pk),
        "messages": [{"role": "user", "content": "And then?"}],
        "client_message_id": str(uuid4()),
    }
    chat = await connect(alice, "/api/chat/", body=body)
    said = await chat.event()
    await in_thread(factories.end_turn, run)
    first = await chat.until("agent:complete")
    next_run = await in_thread(factories.start_turn, session)
    await in_thread(factories.say, next_run, "Then this.")
    await in_thread(factories.end_turn, next_run)
    second = await chat.until("agent:complete")

    assert said[1:] == ("agent:message", said[2])
    assert said[2]["role"] == "user"
    assert first[2]["run_id"] == str(run.pk)
    assert second[2]["run_id"] == str(next_run.pk)
    assert await chat.rest() == ""

    again = await connect(alice, "/api/chat/", body=body)
    assert await again.event() == said
    assert await again.until("agent:complete") == first
    assert await again.until("agent:complete") == second
    assert await again.rest() == ""


async def test_a_chat_ends_when_its_message_leaves_the_queue(
    connect: Listen, alice: User, session: AgentSession, run: Run
) -> None:
    messages = [{"role": "user", "content": "Never mind"}]
    body = {"conversation_id": str(session.pk), "messages": messages}
    chat = await connect(alice, "/api/chat/", body=body)
    said = await chat.event()

    message = await in_thread(Message.objects.get, pk=said[2]["message_id"])
    await in_thread(remove_queued_message, message)

    assert "agent:queue_updated" in await chat.rest()
