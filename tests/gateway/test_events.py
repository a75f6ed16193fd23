from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.gateway.events import Event, EventSplitter, Joiner, encode

from .upstream import delta, end, sse, start

WHOLE = start() + sse({"type": "ping"}) + delta("Hé") + delta("llo") + end()


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def events(raw: bytes) -> list[Event]:
    return list(EventSplitter().feed(raw))


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, len(WHOLE)), max_size=8))
def test_it_finds_the_same_events_wherever_the_chunks_end(cuts: list[int]) -> None:
    splitter = EventSplitter()
    edges = [0, *sorted(cuts), len(WHOLE)]
    chunks = [WHOLE[a:b] for a, b in pairwise(edges)]

    found = [event for chunk in chunks for event in splitter.feed(chunk)]

    assert found == events(WHOLE)
    assert b"".join(event.raw for event in found) == WHOLE
    assert splitter.rest() == b""


def test_it_takes_carriage_returns_and_several_data_lines() -> None:
    raw = b'event: a\r\ndata: {"type":\r\ndata: "a"}\r\n\r\n'

    (event,) = events(raw)

    assert (event.raw, event.data) == (raw, {"type": "a"})


@pytest.mark.parametrize("raw", [b": comment\n\n", b"data: [1]\n\n", b"data: {\n\n"])
def test_what_is_no_json_object_passes_as_it_is(raw: bytes) -> None:
    (event,) = events(raw)

    assert (event.raw, event.data, event.type) == (raw, {}, "")


def test_it_keeps_what_comes_after_the_last_event() -> None:
    splitter = EventSplitter()

    found = list(splitter.feed(delta("a") + b"event: cut"))

    assert [event.raw for event in found] == [delta("a")]
    assert splitter.rest() == b"event: cut"
    assert splitter.rest() == b""


def test_it_merges_deltas_of_a_block_after_the_first() -> None:
    joiner = Joiner(0.03, Clock())

    sent = [joiner.add(event) for event in events(delta("a") + delta("b") + delta("c"))]

    assert sent == [delta("a"), b"", b""]
    assert events(joiner.flush())[0].data == events(delta("bc"))[0].data
    assert joiner.flush() == b""


def test_a_single_held_delta_leaves_as_it_came() -> None:
    joiner = Joiner(0.03, Clock())
    joiner.add(events(delta("a"))[0])
    joiner.add(events(delta("b"))[0])

    assert joiner.flush() == delta("b")


def test_slow_deltas_are_not_delayed() -> None:
    clock = Clock()
    joiner = Joiner(0.03, clock)
    joiner.add(events(delta("a"))[0])
    clock.now = 0.04

    assert joiner.due_in_seconds is None
    assert joiner.add(events(delta("b"))[0]) == delta("b")


def test_it_says_when_held_deltas_are_due() -> None:
    clock = Clock()
    joiner = Joiner(0.03, clock)
    joiner.add(events(delta("a"))[0])
    clock.now = 0.01
    joiner.add(events(delta("b"))[0])

    assert joiner.due_in_seconds == pytest.approx(0.02)
    clock.now = 0.05
    assert joiner.due_in_seconds == 0
    assert events(joiner.add(events(delta("c"))[0]))[0].data["delta"]["text"] == "bc"


@pytest.mark.parametrize(
    "other",
    [
        sse({"type": "ping"}),
        sse({"type": "content_block_stop", "index": 0}),
        delta("z", index=1),
        sse({"type": "content_block_delta", "index": 0, "delta": {"type": "new"}}),
        sse(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": "z", "more": 1},
            }
        ),
        sse(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": "z"},
                "more": 1,
            }
        ),
        sse({"type": "content_block_delta", "index": 0, "delta": None}),
        sse({"type": "content_block_delta", "index": "0", "delta": {}}),
        sse(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": 1},
            }
        ),
        b": comment\n\n",
    ],
)
def test_whatever_cannot_be_merged_keeps_its_place(other: bytes) -> None:
    joiner = Joiner(0.03, Clock())
    joiner.add(events(delta("a"))[0])
    joiner.add(events(delta("b"))[0])

    assert joiner.add(events(other)[0]) == delta("b") + other


@pytest.mark.parametrize(
    ("kind", "name"),
    [("thinking_delta", "thinking"), ("input_json_delta", "partial_json")],
)
def test_it_merges_every_kind_of_text(kind: str, name: str) -> None:
    joiner = Joiner(0.03, Clock())
    for text in ("1", "2", "3"):
        data = {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": kind, name: text},
        }
        joiner.add(events(sse(data))[0])

    merged = events(joiner.flush())[0].data

    assert merged == {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": kind, name: "23"},
    }


def test_without_a_window_nothing_is_merged() -> None:
    joiner = Joiner(0, Clock())

    sent = [joiner.add(event) for event in events(delta("a") + delta("b"))]

    assert sent == [delta("a"), delta("b")]


def test_a_surrogate_pair_cut_in_two_comes_together() -> None:
    joiner = Joiner(0.03, Clock())
    for text in ("a", "\ud83d", "\ude00"):
        joiner.add(events(delta(text))[0])

    merged = events(joiner.flush())[0].data

    assert merged["delta"]["text"] == "\U0001f600"


def test_a_lone_surrogate_survives_encoding() -> None:
    raw = encode({"type": "a", "text": "\ud83d"})

    assert json.loads(raw.split(b"data: ")[1]) == {"type": "a", "text": "\ud83d"}


@settings(deadline=None)
@given(
    texts=st.lists(st.tuples(st.integers(0, 1), st.text(max_size=3)), max_size=12),
    pauses=st.lists(st.sampled_from([0.0, 0.02, 0.05]), min_size=12, max_size=12),
)
def test_merging_changes_no_text_and_no_order(
    texts: list[tuple[int, str]], pauses: list[float]
) -> None:
    clock = Clock()
    joiner = Joiner(0.03, clock)
    sent = b""
    for (index, text), pause in zip(texts, pauses, strict=False):
        clock.now += pause
        sent += joiner.add(events(delta(text, index))[0])
    sent += joiner.flush()

    def runs(deltas: list[tuple[int, str]]) -> list[list[object]]:
        joined: list[list[object]] = []
        for index, text in deltas:
            if joined and joined[-1][0] == index:
                joined[-1][1] = f"{joined[-1][1]}{text}"
            else:
                joined.append([index, text])
        return joined

    arrived = [(e.data["index"], e.data["delta"]["text"]) for e in events(sent)]
    assert runs(arrived) == runs(texts)
