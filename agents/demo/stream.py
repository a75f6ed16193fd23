"""Encodes a `Reply` as the events of a streamed message, or as one whole message."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from agents.demo.script import (
    Call,
    Exact,
    Fault,
    Hold,
    Piece,
    Reply,
    Say,
    Think,
    Words,
)
from agents.demo.state import UsageEntry
from agents.demo.usage import CHARACTERS_PER_TOKEN

Event: TypeAlias = dict[str, Any]
PassGate: TypeAlias = Callable[[str], Awaitable[None]]

MAX_PIECES = 2000  # deltas per piece of text; long texts travel in larger ones
MAX_DELTA = 16 * 1024

_VOCABULARY = (
    *("amber", "birch", "cedar", "dune", "ember", "fern", "grove", "harbour"),
    *("island", "juniper", "kelp", "lagoon", "meadow", "north", "orchard", "pebble"),
    *("quarry", "river", "stone", "tide", "umber", "valley", "willow", "yarrow"),
)

OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}


class CutError(Exception):
    """The script ends the connection here."""


@dataclass(slots=True)
class Message:
    """A reply on its way out, with its ids, its numbers and what has been sent."""

    reply: Reply
    model: str
    usage: UsageEntry
    pass_gate: PassGate
    count_fault: Callable[[], None]
    words_per_second: float | None = None
    with_thinking: bool = True
    characters: int = 0
    words: int = 0
    index: int = -1
    open_kind: str | None = None
    ends_in_blank: bool = True
    broke: bool = False

    async def events(self) -> AsyncIterator[Event]:
        """Yield the message's events, pausing where the script says so.

        Raises: CutError: the connection is to be dropped here.
        """
        yield self._start()
        yield {"type": "ping"}
        for piece in self.reply.pieces:
            async for event in self._piece(piece):
                yield event
            if self.broke:
                return
        for event in self._close_block():
            yield event
        yield self._delta_of_message()
        yield {"type": "message_stop"}

    @property
    def output_tokens(self) -> int:
        forced = self.reply.usage.output if self.reply.usage else None
        if forced is not None:
            return forced
        return max(1, self.characters // CHARACTERS_PER_TOKEN)

    @property
    def stop_reason(self) -> str:
        natural = "tool_use" if self.reply.calls else "end_turn"
        return self.reply.stop_reason or natural

    def numbers(self, output_tokens: int) -> dict[str, Any]:
        written = self.usage.cache_creation_input_tokens
        return {
            "input_tokens": self.usage.input_tokens,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": self.usage.cache_read_input_tokens,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written,
                "ephemeral_1h_input_tokens": 0,
            },
            "output_tokens": output_tokens,
            "service_tier": "standard",
        }

    def _start(self) -> Event:
        message: dict[str, Any] = {
            "id": self.usage.message_id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self.numbers(1),
        }
        return {"type": "message_start", "message": message}

    def _delta_of_message(self) -> Event:
        return {
            "type": "message_delta",
            "delta": {"stop_reason": self.stop_reason, "stop_sequence": None},
            "usage": self.numbers(self.output_tokens),
        }

    async def _piece(self, piece: Piece) -> AsyncIterator[Event]:
        match piece:
            case Hold(gate):
                await self.pass_gate(gate)
            case Fault():
                async for event in self._break(piece):
                    yield event
            case Think() | Call():
                for event in self._whole_block(piece):
                    yield event
            case _:
                async for event in self._text(piece):
                    yield event

    async def _break(self, fault: Fault) -> AsyncIterator[Event]:
        # Counted first: the caller may ask again before the last byte is sent.
        self.count_fault()
        self.broke = True
        if fault.kind == "cut":
            raise CutError
        if fault.kind == "stall":
            await asyncio.Event().wait()  # until the caller hangs up
        if fault.kind == "inband":
            yield {"type": "error", "error": OVERLOADED}

    def _whole_block(self, piece: Think | Call) -> Iterator[Event]:
        if isinstance(piece, Call):
            return self._call(piece)
        return self._think(piece.text) if self.with_thinking else iter(())

    def _chunks_of(self, piece: Say | Exact | Words) -> Iterator[str]:
        match piece:
            case Say(text):
                return _chunks(self._blank() + text)
            case Exact(text):
                return _chunks(text)
            case Words():
                return self._words(piece)

    def _blank(self) -> str:
        return "" if self.ends_in_blank else " "

    async def _text(self, piece: Say | Exact | Words) -> AsyncIterator[Event]:
        if self.open_kind != "text":
            for event in self._open("text", {"type": "text", "text": ""}):
                yield event
        rate = self._pace(piece)
        started = time.monotonic()
        for number, chunk in enumerate(self._chunks_of(piece)):
            if rate:
                # Aimed at fixed times, so that a slow reader doesn't shift the rest.
                await asyncio.sleep(max(0, started + number / rate - time.monotonic()))
            if isinstance(piece, Words) and piece.stamped:
                chunk += f"t{time.monotonic_ns()}"  # when it leaves, after the pause
            self.ends_in_blank = chunk[-1:].isspace()
            yield self._delta({"type": "text_delta", "text": chunk}, chunk)

    def _pace(self, piece: Say | Exact | Words) -> float | None:
        if isinstance(piece, Exact):
            return None
        own_pace = piece.per_second if isinstance(piece, Words) else None
        return own_pace or self.words_per_second

    def _words(self, words: Words) -> Iterator[str]:
        for _ in range(words.count):
            if words.stamped:
                yield self._blank()  # the stamp is added when it leaves
                continue
            name = _VOCABULARY[self.words % len(_VOCABULARY)]
            self.words += 1
            yield f"{self._blank()}{name}-{self.words}"

    def _think(self, text: str) -> Iterator[Event]:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        yield from self._open("thinking", block)
        for chunk in _chunks(text):
            yield self._delta({"type": "thinking_delta", "thinking": chunk}, chunk)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        signature = base64.b64encode(digest).decode()
        yield self._delta({"type": "signature_delta", "signature": signature}, "")
        yield from self._close_block()

    def _call(self, call: Call) -> Iterator[Event]:
        call_id = f"toolu_demo{secrets.token_hex(10)}"
        block = {"type": "tool_use", "id": call_id, "name": call.tool, "input": {}}
        yield from self._open("tool_use", block)
        text = call.input if isinstance(call.input, str) else json.dumps(call.input)
        size = min(MAX_DELTA, max(24, len(text) // 64))
        for start in range(0, len(text), size):
            part = text[start : start + size]
            yield self._delta({"type": "input_json_delta", "partial_json": part}, part)
        yield from self._close_block()

    def _open(self, kind: str, block: dict[str, Any]) -> Iterator[Event]:
        yield from self._close_block()
        self.index += 1
        self.open_kind, self.ends_in_blank = kind, True
        yield {
            "type": "content_block_start",
            "index": self.index,
            "content_block": block,
        }

    def _delta(self, delta: dict[str, Any], text: str) -> Event:
        self.characters += len(text)
        return {"type": "content_block_delta", "index": self.index, "delta": delta}

    def _close_block(self) -> Iterator[Event]:
        if self.open_kind is not None:
            self.open_kind = None
            yield {"type": "content_block_stop", "index": self.index}


def _chunks(text: str) -> Iterator[str]:
    """Cut a text before its words, so that joining the chunks gives it back."""
    words = re.findall(r"\s*\S+|\s+", text)
    size = max(1, -(-len(words) // MAX_PIECES))
    for start in range(0, len(words), size):
        chunk = "".join(words[start : start + size])
        for at in range(0, len(chunk), MAX_DELTA):
            yield chunk[at : at + MAX_DELTA]


def encode(event: Event) -> bytes:
    """One server-sent event; plain ASCII, so that lone surrogates can travel."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode("ascii")


class Collector:
    """Puts events together again, for callers that don't stream."""

    def __init__(self) -> None:
        self.message: dict[str, Any] = {}
        self._json = ""

    def add(self, event: Event) -> None:
        match event["type"]:
            case "message_start":
                self.message = event["message"]
            case "content_block_start":
                self.message["content"].append(dict(event["content_block"]))
                self._json = ""
            case "content_block_delta":
                self._add_delta(event["delta"])
            case "content_block_stop":
                self._end_block()
            case "message_delta":
                self.message.update(event["delta"], usage=event["usage"])

    def _add_delta(self, delta: dict[str, Any]) -> None:
        block = self.message["content"][-1]
        match delta["type"]:
            case "input_json_delta":
                self._json += delta["partial_json"]
            case "signature_delta":
                block["signature"] = delta["signature"]
            case "thinking_delta":
                block["thinking"] += delta["thinking"]
            case _:
                block["text"] += delta["text"]

    def _end_block(self) -> None:
        block = self.message["content"][-1]
        if block["type"] == "tool_use" and self._json:
            try:
                block["input"] = json.loads(self._json)
            except json.JSONDecodeError:
                block["input"] = {}
