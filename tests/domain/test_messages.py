from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import DatabaseError
from hypothesis import given

from agents.domain import messages, runs
from agents.domain.messages import clean_prompt, remove_queued_message, send_message
from agents.domain.runs import stop_agent
from agents.errors import InvalidInputError
from agents.models import AgentSession, Message, Run, User
from agents.rendering.text import clean_text, is_blank
from tests import factories
from tests.texts import HOSTILE
from tests.threads import at_once


def delivered(session: AgentSession) -> list[str]:
    said = session.messages.filter(role="user", hidden=False)
    waiting = session.messages.queued().values("pk")
    return list(said.exclude(pk__in=waiting).values_list("text", flat=True))


def test_a_message_to_a_resting_agent_starts_a_turn(run: Run, alice: User) -> None:
    factories.end_turn(run)

    message = send_message(run.session, author=alice, text="Go on")

    assert message.queued_at is None
    assert run.session.runs.unfinished().get().trigger_message == message


def test_a_message_to_a_busy_agent_waits_in_the_queue(run: Run, alice: User) -> None:
    message = send_message(run.session, author=alice, text="And then?")

    assert message.queued_at is not None
    assert run.session.runs.unfinished().get() == run
    event = run.session.events.filter(type="agent:queue_updated").get()
    assert event.data == {"queued_messages": 1, "is_paused": False}


def test_the_same_client_id_sends_once(run: Run, alice: User) -> None:
    sent_as = uuid4()

    first = send_message(
        run.session, author=alice, text="Hi", client_message_id=sent_as
    )
    again = send_message(
        run.session, author=alice, text="Hi", client_message_id=sent_as
    )

    assert first == again
    assert run.session.messages.filter(text="Hi").count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_busy", [True, False])
def test_the_same_client_id_at_once_sends_once(is_busy: bool) -> None:
    alice = factories.make_user("alice")
    session = factories.make_session(alice)
    if not is_busy:
        factories.end_turn(factories.start_turn(session))
    sent_as = uuid4()

    def send() -> Message:
        return send_message(session, author=alice, text="Hi", client_message_id=sent_as)

    first, second = at_once(send, send)

    assert first == second == session.messages.get(text="Hi")
    assert session.runs.unfinished().count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_messages_at_once_one_starts_the_turn_and_one_waits() -> None:
    alice = factories.make_user("alice")
    session = factories.make_session(alice)
    factories.end_turn(factories.start_turn(session))

    sent = at_once(
        lambda: send_message(session, author=alice, text="One"),
        lambda: send_message(session, author=alice, text="Two"),
    )

    assert all(isinstance(message, Message) for message in sent)
    assert session.runs.unfinished().count() == 1
    assert session.messages.queued().count() == 1
    assert session.messages.count() == 3


def test_queued_messages_are_delivered_in_order_and_stand_where_they_were_heard(
    run: Run, alice: User
) -> None:
    send_message(run.session, author=alice, text="Two")
    send_message(run.session, author=alice, text="Three")
    answer = factories.say(run, "One, done")

    factories.end_turn(run)

    second = run.session.runs.unfinished().get().trigger_message
    assert second.text == "Two"
    assert second.delivered_at is not None
    assert second.seq > answer.seq
    factories.end_turn(factories.start_turn(run.session))
    assert run.session.runs.unfinished().get().trigger_message.text == "Three"
    assert delivered(run.session) == ["Count to three", "Two", "Three"]


@pytest.mark.parametrize(
    "outcome",
    [
        {"stop_reason": "cancelled"},
        {"stop_reason": "max_steps"},
        {"stop_reason": "error", "error_class": "overloaded", "error_text": "Busy"},
    ],
)
def test_the_queue_pauses_after_a_turn_that_did_not_end_well(
    run: Run, alice: User, outcome: dict[str, str]
) -> None:
    send_message(run.session, author=alice, text="And then?")

    factories.end_turn(run, **outcome)

    run.session.refresh_from_db()
    assert run.session.queue_paused
    assert not run.session.runs.unfinished().exists()
    assert run.session.events.filter(type="agent:queue_updated").latest("seq").data == {
        "queued_messages": 1,
        "is_paused": True,
    }


def test_a_stop_that_came_too_late_still_pauses_the_queue(
    run: Run, alice: User
) -> None:
    send_message(run.session, author=alice, text="And then?")
    stop_agent(run.session)

    factories.end_turn(run)

    run.session.refresh_from_db()
    assert run.session.queue_paused
    assert run.session.status == "completed"


def test_the_next_message_lets_a_paused_queue_go_on_in_its_order(
    run: Run, alice: User
) -> None:
    for text in ("First", "Second"):
        send_message(run.session, author=alice, text=text)
    factories.end_turn(run, stop_reason="cancelled")

    send_message(run.session, author=alice, text="Third")

    for text in ("First", "Second", "Third"):
        assert run.session.runs.unfinished().get().trigger_message.text == text
        factories.end_turn(factories.start_turn(run.session))
    assert not run.session.runs.unfinished().exists()


def test_nothing_is_paused_where_nothing_waits(run: Run) -> None:
    factories.end_turn(run, stop_reason="cancelled")

    run.session.refresh_from_db()
    assert not run.session.queue_paused


def test_delivering_with_an_empty_queue_does_nothing(run: Run) -> None:
    factories.end_turn(run)

    assert runs.deliver_next_message(run.session_id) is None


def test_a_queued_message_can_be_taken_back(run: Run, alice: User) -> None:
    message = send_message(run.session, author=alice, text="Never mind")
    count = AgentSession.objects.get().message_count

    assert remove_queued_message(message)

    session = AgentSession.objects.get()
    assert not session.messages.filter(text="Never mind").exists()
    assert session.message_count == count - 1
    factories.end_turn(run)
    assert not session.runs.unfinished().exists()


def test_a_delivered_message_can_not_be_taken_back(run: Run, alice: User) -> None:
    message = send_message(run.session, author=alice, text="Go on")
    factories.end_turn(run)

    assert not remove_queued_message(message)
    assert not remove_queued_message(run.trigger_message)
    assert run.session.messages.filter(text="Go on").exists()


def test_the_preview_and_the_count_follow_what_is_said(run: Run, alice: User) -> None:
    factories.say(run, "One,\ntwo, three")

    session = AgentSession.objects.get()
    assert session.last_preview == "One, two, three"
    assert session.message_count == 2


@pytest.mark.parametrize("text", ["", "  \n", "\r\n", "\u200b \u2060\ufeff", "\0"])
def test_nothing_is_no_message(session: AgentSession, alice: User, text: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        send_message(session, author=alice, text=text)

    assert refusal.value.field == "text"


def test_a_message_has_a_largest_size() -> None:
    largest = "x" * messages.MAX_PROMPT_CHARACTERS

    assert clean_prompt(largest) == largest
    with pytest.raises(InvalidInputError, match="1,000,001"):
        clean_prompt(largest + "x")


@given(HOSTILE)
def test_every_prompt_can_be_stored_or_is_refused(text: str) -> None:
    try:
        cleaned = clean_prompt(text)
    except InvalidInputError:
        assert is_blank(clean_text(text))
        return

    assert "\x00" not in cleaned
    assert cleaned.encode().decode() == cleaned


def test_attachments_are_cleaned(session: AgentSession, alice: User) -> None:
    message = send_message(
        session,
        author=alice,
        text="See",
        attachments={"context_paths": ["a\x00\ud800"]},
    )

    assert message.attachments == {"context_paths": ["a\ufffd\ufffd"]}


def test_places_in_the_transcript_are_never_given_twice(run: Run, alice: User) -> None:
    for number in range(3):
        send_message(run.session, author=alice, text=str(number))
        factories.say(run, "Yes")

    places = list(run.session.messages.values_list("seq", flat=True))
    assert places == sorted(set(places))
    with pytest.raises(DatabaseError):
        Message.objects.create(
            session=run.session, branch=run.branch, seq=places[0], role="user"
        )
