from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents.events import vocabulary
from agents.events.vocabulary import EVENTS, Event, NameUpdated, StreamDelta
from agents.models import SessionEvent


def all_events() -> set[type[Event]]:
    return {
        found
        for found in vars(vocabulary).values()
        if isinstance(found, type) and issubclass(found, Event) and found is not Event
    }


def example(event: type[Event]) -> Event:
    values: dict[str, Any] = {
        "UUID": uuid4(),
        "str": "text",
        "int": 1,
        "bool": True,
        "int | None": None,
        "UUID | None": None,
        "list[str]": ["one", "two"],
    }
    return event(**{field.name: values[str(field.type)] for field in fields(event)})


def test_every_event_is_registered_under_its_wire_name() -> None:
    assert set(EVENTS.values()) == all_events()
    assert all(EVENTS[event.wire] is event for event in all_events())


def test_wire_names_fit_their_column() -> None:
    longest = SessionEvent._meta.get_field("type").max_length

    assert longest is not None
    assert all(0 < len(wire) <= longest for wire in EVENTS)


@pytest.mark.parametrize("event", EVENTS.values())
def test_every_event_is_plain_json_without_its_session(event: type[Event]) -> None:
    made = example(event)

    data = made.data()

    assert json.loads(json.dumps(data)) == data
    assert set(data) == {field.name for field in fields(event)} - {"session_id"}
    assert isinstance(made.session_id, UUID)


def test_an_event_does_not_change() -> None:
    event = NameUpdated(session_id=uuid4(), name="a")

    with pytest.raises(FrozenInstanceError):
        event.name = "b"  # type: ignore[misc]


def test_deltas_go_to_watchers_only() -> None:
    assert not StreamDelta.is_slim
