"""Which words count, and from when to when."""

from __future__ import annotations

import pytest

from agents.demo.script import Reply, Words, parse_script

from .stamps import NS_PER_MS, NS_PER_SECOND, Sightings, latencies, stream_prompt

START = 10**12


def stream(*, starts: float, seconds: float, late_ms: float) -> dict[int, int]:
    """Ten words a second that are each seen `late_ms` after they left."""
    lefts = [
        START + round((starts + tenth / 10) * NS_PER_SECOND)
        for tenth in range(round(seconds * 10) + 1)
    ]
    return {left: left + round(late_ms * NS_PER_MS) for left in lefts}


def test_the_prompt_is_one_that_the_demo_model_understands() -> None:
    reply = Reply((Words(5, 20, stamped=True),))

    assert parse_script(stream_prompt(5, 20)) == (reply,)


def test_a_word_counts_when_it_is_seen_first() -> None:
    sightings = Sightings()

    sightings.read(f"t{START} t{START + 5}")
    first = dict(sightings.seen)
    sightings.read(f"<p>t{START} t{START + 5} t{START + 9}</p>")

    assert sorted(sightings.seen) == [START, START + 5, START + 9]
    assert sightings.seen[START] == first[START]


def test_words_from_before_do_not_count() -> None:
    sightings = Sightings(since=START + 1)

    sightings.read(f"t{START} t{START + 5}")

    assert list(sightings.seen) == [START + 5]


def test_other_numbers_are_no_stamps() -> None:
    sightings = Sightings()

    sightings.read(f"{START} at{START} t123 t{START}x")

    assert sightings.seen == {}


def test_only_words_that_left_while_all_streams_ran_are_compared() -> None:
    early = stream(starts=0, seconds=6, late_ms=5)
    late = stream(starts=2, seconds=6, late_ms=15)

    found = latencies([early, late])

    # From one second after the later one began to the end of the earlier one.
    assert len(found) == 2 * 31
    assert (found.at(0), found.at(100)) == (5, 15)


def test_streams_that_never_met_are_an_error() -> None:
    one = stream(starts=0, seconds=2, late_ms=5)
    other = stream(starts=5, seconds=2, late_ms=5)

    with pytest.raises(ValueError, match="never ran at the same time"):
        latencies([one, other])


def test_a_stream_without_words_is_an_error() -> None:
    with pytest.raises(ValueError, match="never seen"):
        latencies([stream(starts=0, seconds=3, late_ms=5), {}])
