"""Stamped words: when each left the model, and when it was seen here.

Both ends read CLOCK_MONOTONIC, which all processes of a machine share.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .samples import Samples

_STAMP = re.compile(r"\bt(\d{10,20})\b")
SETTLE_SECONDS = 1.0
NS_PER_MS = 1_000_000
NS_PER_SECOND = 1_000_000_000


def stream_prompt(words: int, per_second: float) -> str:
    return f"demo: stream {words} words at {per_second:g}/s stamped"


@dataclass(slots=True)
class Sightings:
    """What one reader saw: stamp -> when it came first, both in nanoseconds.

    Pages show a text twice, as it grows and when it is finished, so only the first
    sight of a stamp counts. Words that left before `since` don't count.
    """

    since: int = 0
    seen: dict[int, int] = field(default_factory=dict)

    def read(self, text: str) -> None:
        now = time.monotonic_ns()
        for stamp in map(int, _STAMP.findall(text)):
            if stamp >= self.since:
                self.seen.setdefault(stamp, now)


def overlap(streams: Iterable[Mapping[int, int]]) -> tuple[int, int]:
    """The time in which all streams ran, without its settling at the start."""
    streams = [stream for stream in streams if stream]
    begin = max(min(stream) for stream in streams) + SETTLE_SECONDS * NS_PER_SECOND
    end = min(max(stream) for stream in streams)
    return round(begin), end


def latencies(streams: Iterable[Mapping[int, int]]) -> Samples:
    """From leaving to being seen, of all words that left while all streams ran.

    Raises: ValueError: there was no such time.
    """
    streams = list(streams)
    if not all(streams):
        raise ValueError("a stream was never seen")
    begin, end = overlap(streams)
    found = Samples.of(
        (seen - left) / NS_PER_MS
        for stream in streams
        for left, seen in stream.items()
        if begin <= left <= end
    )
    if not found.values:
        raise ValueError("the streams never ran at the same time")
    return found
