"""Server-sent events as bytes: cut from a stream, and merged.

Events pass as the bytes they came in, except for merged deltas, which are encoded
anew (in ASCII, so that lone surrogates survive).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_END = re.compile(rb"\r?\n\r?\n")
_LONGEST_END = 4

_TEXT_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event as it came; `data` is empty where it holds no JSON object."""

    raw: bytes
    data: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.data.get("type", ""))


class EventSplitter:
    """Cuts a byte stream into events, wherever its chunks begin and end."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Event]:
        # Only the new part is searched: a long event comes in many chunks.
        search_from = max(0, len(self._buffer) - _LONGEST_END + 1)
        self._buffer += chunk
        start = 0
        for end in _END.finditer(bytes(self._buffer[search_from:])):
            stop = search_from + end.end()
            yield _event(bytes(self._buffer[start:stop]))
            start = stop
        del self._buffer[:start]

    def rest(self) -> bytes:
        """What came after the last whole event."""
        rest, self._buffer = bytes(self._buffer), bytearray()
        return rest


def _event(raw: bytes) -> Event:
    lines = raw.splitlines()
    text = b"\n".join(line[5:] for line in lines if line.startswith(b"data:"))
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    return Event(raw, data if isinstance(data, dict) else {})


def encode(data: dict[str, Any]) -> bytes:
    text = json.dumps(data, separators=(",", ":"))
    return f"event: {data['type']}\ndata: {text}\n\n".encode("ascii")


class _Delta(NamedTuple):
    at: int
    kind: str
    text: str

    @property
    def block(self) -> tuple[int, str]:
        return self.at, self.kind


def _delta(data: dict[str, Any]) -> _Delta | None:
    """A delta that can be merged: one with no field that merging would lose."""
    if data.get("type") != "content_block_delta" or data.keys() != {
        "type",
        "index",
        "delta",
    }:
        return None
    index, delta = data["index"], data["delta"]
    if not isinstance(index, int) or not isinstance(delta, dict):
        return None
    kind = str(delta.get("type"))
    name = _TEXT_FIELDS.get(kind)
    if name is None or delta.keys() != {"type", name}:
        return None
    text = delta[name]
    return _Delta(index, kind, text) if isinstance(text, str) else None


@dataclass(slots=True)
class Joiner:
    """Merges consecutive deltas of a block, so that they leave at most once per window.

    A delta that comes when nothing of its block left within the last window (the
    first one above all) leaves at once: slow streams aren't delayed at all.
    """

    window_seconds: float
    clock: Callable[[], float] = time.monotonic
    _block: tuple[int, str] | None = field(default=None, init=False)
    _left_at: float = field(default=0.0, init=False)
    _held: list[str] = field(default_factory=list, init=False)
    _raw: bytes = field(default=b"", init=False)

    @property
    def due_in_seconds(self) -> float | None:
        """How long until the held deltas must leave; None where nothing is held."""
        if not self._held:
            return None
        return max(0.0, self._left_at + self.window_seconds - self.clock())

    def add(self, event: Event) -> bytes:
        """Returns: what has to be sent now, held deltas before the event."""
        delta = _delta(event.data) if self.window_seconds > 0 else None
        if delta is None:
            return self.flush() + event.raw
        if delta.block != self._block:
            out = self.flush() + event.raw
            self._block, self._left_at = delta.block, self.clock()
            return out
        self._held.append(delta.text)
        self._raw = event.raw
        return self.flush() if self.due_in_seconds == 0 else b""

    def flush(self) -> bytes:
        if not self._held:
            return b""
        out = self._raw if len(self._held) == 1 else self._merged()
        self._held, self._raw, self._left_at = [], b"", self.clock()
        return out

    def _merged(self) -> bytes:
        assert self._block is not None
        index, kind = self._block
        delta = {"type": kind, _TEXT_FIELDS[kind]: "".join(self._held)}
        return encode({"type": "content_block_delta", "index": index, "delta": delta})
