"""Sending messages, showing them in full, taking them out of the queue."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from agents.domain.messages import send_message
from agents.models import AgentSession, Message, Run, Share, User
from agents.models.messages import ToolOutcome
from agents.models.sessions import ShareRight
from tests import factories
from tests.dom import Node, parse

HTMX = {"HX-Request": "true"}
SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


def page_of(response: Any) -> Node:
    return parse(response.content.decode())


def send(client: Client, session: AgentSession, text: str, **fields: Any) -> Any:
    headers = fields.pop("headers", HTMX)
    data = {"text": text, **fields}
    return client.post(f"/sessions/{session.pk}/messages/", data, headers=headers)


def removal(message: Message) -> tuple[str, dict[str, str]]:
    return f"/messages/{message.pk}/move/", {"action": "remove"}


@pytest.fixture
def idle(run: Run) -> AgentSession:
    factories.end_turn(run)
    return run.session


def test_a_message_starts_a_run(
    idle: AgentSession, alice: User, sign_in: SignIn
) -> None:
    response = send(sign_in(alice), idle, "Now to\r\nfour", headers={})

    assert response.status_code == 302
    assert response["Location"] == f"/sessions/{idle.pk}/"
    message = idle.messages.order_by("-seq")[0]
    assert (message.text, message.author) == ("Now to\nfour", alice)
    assert idle.runs.unfinished().get().trigger_message == message


def test_the_answer_for_htmx_brings_a_fresh_id_and_the_state(
    idle: AgentSession, alice: User, sign_in: SignIn
) -> None:
    used = uuid.uuid4()

    page = page_of(send(sign_in(alice), idle, "Go", client_message_id=used))

    fresh = page.find("composer-client-id").attributes["value"]
    assert uuid.UUID(fresh) != used
    assert page.find(f"session-{idle.pk}-status").words == "Queued"
    assert "place 1 in line" in page.find(f"session-{idle.pk}-tail").words
    assert "csrfmiddlewaretoken" not in page.outline()


def test_the_same_id_sends_one_message(
    idle: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client, message_id = sign_in(alice), uuid.uuid4()
    before = idle.messages.count()

    for _ in range(2):
        assert (
            send(client, idle, "Once", client_message_id=message_id).status_code == 200
        )

    assert idle.messages.count() == before + 1


def test_changed_words_under_a_used_id_are_not_lost(
    idle: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client, message_id = sign_in(alice), uuid.uuid4()

    send(client, idle, "First", client_message_id=message_id)
    send(client, idle, "Second", client_message_id=message_id)

    assert [m.text for m in idle.messages.order_by("seq")][-2:] == ["First", "Second"]


@pytest.mark.parametrize("headers", [HTMX, {}])
def test_nothing_to_send_is_an_error_at_the_field(
    idle: AgentSession, alice: User, sign_in: SignIn, headers: dict[str, str]
) -> None:
    response = send(sign_in(alice), idle, "  ", headers=headers)

    assert response.status_code == 422
    assert "Write a message first." in page_of(response).find("composer-errors").words


def test_too_long_a_message_stays_in_the_field(
    idle: AgentSession, alice: User, sign_in: SignIn
) -> None:
    response = send(sign_in(alice), idle, "x" * 1_000_001, headers={})

    page = page_of(response)
    assert response.status_code == 422
    assert "1,000,001" in page.find("composer-errors").words
    assert len(page.find("composer-text").text) == 1_000_001


def test_a_message_to_a_busy_agent_waits_above_the_composer(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    client, queue = sign_in(alice), f"session-{run.session_id}-queue"

    answer = page_of(send(client, run.session, "And then <b>stop</b>"))

    assert "And then <b>stop</b>" in answer.find(queue).text
    page = page_of(client.get(f"/sessions/{run.session_id}/"))
    assert "And then <b>stop</b>" in page.find(queue).text
    assert "And then" not in page.find(f"session-{run.session_id}-items").text


@pytest.mark.parametrize("headers", [HTMX, {}])
def test_a_queued_message_can_be_removed(
    run: Run, alice: User, sign_in: SignIn, headers: dict[str, str]
) -> None:
    client = sign_in(alice)
    send(client, run.session, "Not this")
    message = run.session.messages.queued().get()

    response = client.post(
        f"/messages/{message.pk}/move/", {"action": "remove"}, headers=headers
    )

    assert response.status_code == (200 if headers else 302)
    assert not Message.objects.filter(pk=message.pk).exists()


def test_a_delivered_message_can_not_be_removed(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    send(client, run.session, "This")
    message = run.session.messages.queued().get()
    factories.end_turn(run)

    response = client.post(
        f"/messages/{message.pk}/move/", {"action": "remove"}, headers=HTMX
    )

    assert response.status_code == 200
    assert Message.objects.filter(pk=message.pk).exists()
    first = run.session.messages.order_by("seq")[0]
    assert client.post(*removal(first)).status_code == 404


def test_a_message_is_shown_with_its_tools_result(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    call = factories.call_tool(run)
    result = factories.return_result(run, text="boom", outcome=ToolOutcome.ERROR)
    client = sign_in(alice)

    for message in (call, result):
        page = page_of(client.get(f"/messages/{message.pk}/"))
        card = page.find(f"tool-{call.pk}")
        assert "boom" in card.text
        assert "Failed" in card.words


def test_hidden_messages_are_nowhere(run: Run, alice: User, sign_in: SignIn) -> None:
    message = factories.say(run, "Psst")
    Message.objects.filter(pk=message.pk).update(hidden=True)

    assert sign_in(alice).get(f"/messages/{message.pk}/").status_code == 404


def test_strangers_find_no_message(run: Run, charlie: User, sign_in: SignIn) -> None:
    message = factories.say(run, "Private")
    client = sign_in(charlie)

    assert client.get(f"/messages/{message.pk}/").status_code == 404
    assert client.post(*removal(message)).status_code == 404


def test_those_who_may_look_can_not_take_from_the_queue(
    run: Run, alice: User, bob: User, sign_in: SignIn
) -> None:
    Share.objects.create(session=run.session, user=bob, right=ShareRight.VIEW)
    send(sign_in(alice), run.session, "Mine")
    message = run.session.messages.queued().get()

    response = sign_in(bob).post(*removal(message))

    assert response.status_code == 403
    assert Message.objects.filter(pk=message.pk).exists()


def test_queued_messages_change_places_and_words(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    first = send_message(run.session, author=alice, text="First")
    second = send_message(run.session, author=alice, text="Second")
    client = sign_in(alice)

    client.post(f"/messages/{second.pk}/move/", {"action": "up"}, headers=HTMX)
    client.post(f"/messages/{first.pk}/requeue/", {"text": "Later"}, headers=HTMX)

    assert [row.text for row in run.session.messages.queued()] == ["Second", "Later"]
    client.post(f"/messages/{second.pk}/move/", {"action": "down"}, headers=HTMX)
    assert [row.text for row in run.session.messages.queued()] == ["Later", "Second"]


@pytest.mark.parametrize("headers", [HTMX, {}])
@pytest.mark.parametrize(
    ("text", "sentence"),
    [("  ", "Write a message first."), ("x" * 1_000_001, "1,000,001")],
)
def test_words_that_are_refused_stay_in_the_queued_messages_form(
    run: Run,
    alice: User,
    sign_in: SignIn,
    headers: dict[str, str],
    text: str,
    sentence: str,
) -> None:
    waiting = send_message(run.session, author=alice, text="And then?")
    send_message(run.session, author=alice, text="Another")

    response = sign_in(alice).post(
        f"/messages/{waiting.pk}/requeue/", {"text": text}, headers=headers
    )

    assert response.status_code == 422
    page = page_of(response)
    assert sentence in page.find(f"queued-{waiting.pk}-errors").words
    fields = page.find(f"session-{run.session_id}-queue").find_all("textarea")
    assert [field.text for field in fields] == [text, "Another"]
    assert "delivered already" not in page.text
    assert [m.text for m in run.session.messages.queued()] == ["And then?", "Another"]


def test_send_now_stops_the_turn_and_goes_next(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    send_message(run.session, author=alice, text="First")
    urgent = send_message(run.session, author=alice, text="Urgent")

    sign_in(alice).post(f"/messages/{urgent.pk}/move/", {"action": "now"})

    run.refresh_from_db()
    assert run.stop_requested_at is not None
    factories.end_turn(run, stop_reason="cancelled")
    started = run.session.runs.unfinished().get()
    assert started.trigger_message_id == urgent.pk
    assert [row.text for row in run.session.messages.queued()] == ["First"]


def test_a_paused_queue_goes_on_at_a_persons_word(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    waiting = send_message(run.session, author=alice, text="And then?")
    factories.end_turn(run, stop_reason="cancelled")
    assert not run.session.runs.unfinished().exists()

    sign_in(alice).post(f"/sessions/{run.session_id}/queue/")

    assert run.session.runs.unfinished().get().trigger_message_id == waiting.pk
