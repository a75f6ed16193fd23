"""What a feed yields is the site's own vocabulary."""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents.api.feed import AgenticEvent, load_events
from agents.api.sse import format_event
from agents.domain.runs import continue_session
from agents.events.vocabulary import EVENTS, Event, MessageSaved
from agents.models import AgentSession, Message, Run
from tests import factories

SAMPLES: dict[str, Any] = {
    "UUID": UUID(int=7),
    "str": "text",
    "int": 3,
    "bool": True,
    "float": 0.5,
    "list[str]": ["one", "two"],
}


def sample(kind: type[Event]) -> Event:
    return kind(
        **{
            each.name: SAMPLES[str(each.type).partition(" |")[0]]
            for each in fields(kind)
        }
    )


@pytest.mark.parametrize("kind", EVENTS.values(), ids=EVENTS)
def test_each_event_comes_back_as_the_fact_that_it_was(kind: type[Event]) -> None:
    fact = sample(kind)

    event = AgenticEvent(
        type=kind.wire, session_id=fact.session_id, data=fact.data(), seq=1
    )

    assert event.fact == fact


def test_the_end_of_a_stream_is_no_fact_of_the_session() -> None:
    event = AgenticEvent(type="closed", session_id=uuid4(), data={"reason": "token"})

    assert event.fact is None
    assert event.as_json().keys() == {"type", "session_id", "data"}


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "\u2028", "data: x\n\n", "é"])
def test_no_text_breaks_out_of_its_frame(text: str) -> None:
    event = AgenticEvent(
        type="agent:stream_delta", session_id=uuid4(), data={"text": text}
    )

    frame = format_event(event)

    assert frame.count("\n") == 3
    assert len(frame.splitlines()) == 3
    assert frame.endswith("\n\n")


@pytest.mark.django_db
def test_what_no_page_shows_is_told_without_its_words(
    session: AgentSession, run: Run
) -> None:
    factories.end_turn(run, stop_reason="cancelled")
    continue_session(session)

    told = {
        event.data["message_id"]: event.message
        for event in load_events(session.pk, 0)
        if event.type == MessageSaved.wire
    }

    hidden = Message.objects.get(hidden=True)
    assert told[str(hidden.pk)] is None
    assert told[str(run.trigger_message_id)] is not None
