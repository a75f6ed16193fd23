"""What the demo model remembers between calls, and the handles that tests hold.

All methods may be called from any thread: tests run beside the server's loop. The
conversation itself is not here; it travels in each request.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agents.demo.script import Refusal

Outcome: TypeAlias = Literal["pending", "answered", "refused", "cut", "hung up"]
FailureKey: TypeAlias = tuple[str, ...]

WAIT_SECONDS = 30.0
MAX_FAILURE_KEYS = 10_000


@dataclass(slots=True)
class RecordedRequest:
    """One request as it came in, header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any] | None
    outcome: Outcome = "pending"

    @property
    def session_id(self) -> str:
        """The CLI's session, from its header or else from the request's metadata."""
        return self.headers.get("x-claude-code-session-id") or self._metadata_session()

    @property
    def agent_id(self) -> str:
        """The sub-agent that asks; empty for the main thread."""
        return self.headers.get("x-claude-code-agent-id", "")

    @property
    def key(self) -> str:
        """The API key or bearer token that came with the request."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return self.headers.get("x-api-key") or bearer

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list((self.body or {}).get("messages") or [])

    @property
    def tools(self) -> list[str]:
        return [tool.get("name", "") for tool in (self.body or {}).get("tools") or []]

    def _metadata_session(self) -> str:
        user_id = ((self.body or {}).get("metadata") or {}).get("user_id", "")
        try:
            return str(json.loads(user_id).get("session_id", ""))
        except (TypeError, ValueError, AttributeError):
            return str(user_id)


@dataclass(slots=True)
class UsageEntry:
    """The numbers that were sent for one answered call.

    `output_tokens` is what `message_start` said until the end of the message is sent.
    """

    message_id: str
    model: str
    session_id: str
    agent_id: str
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    finished: bool = False


@dataclass(slots=True)
class _Gate:
    is_open: bool = False
    arrivals: int = 0
    waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = field(
        default_factory=list
    )


@dataclass(slots=True)
class DemoState:
    """Settings, records and gates of one demo model.

    `required_key` None accepts every caller. `words_per_second` paces texts that don't
    name a pace; None sends them at once. `max_recorded` bounds both logs (0 keeps
    nothing, as the product does; None keeps everything, as tests do).
    """

    required_key: str | None = None
    words_per_second: float | None = None
    max_recorded: int | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _gates: dict[str, _Gate] = field(default_factory=dict)
    _failures: Counter[FailureKey] = field(default_factory=Counter)
    _ordered: deque[Refusal] = field(default_factory=deque)
    _requests: deque[RecordedRequest] = field(init=False)
    _usage: deque[UsageEntry] = field(init=False)

    def __post_init__(self) -> None:
        self._requests = deque(maxlen=self.max_recorded)
        self._usage = deque(maxlen=self.max_recorded)

    @property
    def requests(self) -> list[RecordedRequest]:
        with self._changed:
            return list(self._requests)

    @property
    def model_calls(self) -> list[RecordedRequest]:
        """The recorded requests for a message, probes and counts left out."""
        return [r for r in self.requests if r.path.endswith("/v1/messages")]

    @property
    def usage_log(self) -> list[UsageEntry]:
        with self._changed:
            return list(self._usage)

    def record(self, request: RecordedRequest) -> None:
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()

    def settle(self, request: RecordedRequest, outcome: Outcome) -> None:
        with self._changed:
            request.outcome = outcome
            self._changed.notify_all()

    def log_usage(self, entry: UsageEntry) -> None:
        with self._changed:
            self._usage.append(entry)
            self._changed.notify_all()

    def finish_usage(self, entry: UsageEntry, output_tokens: int) -> None:
        with self._changed:
            entry.output_tokens, entry.finished = output_tokens, True
            self._changed.notify_all()

    def wait_for(
        self, condition: Callable[[DemoState], bool], timeout: float = WAIT_SECONDS
    ) -> None:
        """Block until `condition` holds; from async code use it in a thread.

        Raises: TimeoutError: it did not within `timeout` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), timeout):
                raise TimeoutError("the demo model did not get there")

    def hold(self, name: str) -> None:
        """Close a gate again; gates are closed from the start."""
        with self._changed:
            self._gate(name).is_open = False

    def release(self, name: str) -> None:
        """Open a gate: replies held there, and later ones, go on."""
        with self._changed:
            gate = self._gate(name)
            gate.is_open = True
            waiters, gate.waiters = gate.waiters, []
        for loop, event in waiters:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def wait_until_held(
        self, name: str, *, arrivals: int = 1, timeout: float = WAIT_SECONDS
    ) -> None:
        """Block until a reply has sent all that stands before the gate."""
        self.wait_for(lambda state: state._gate(name).arrivals >= arrivals, timeout)

    async def pass_gate(self, name: str) -> None:
        """Wait, as a reply, until the gate is open."""
        event = asyncio.Event()
        with self._changed:
            gate = self._gate(name)
            gate.arrivals += 1
            self._changed.notify_all()
            if gate.is_open:
                return
            waiter = (asyncio.get_running_loop(), event)
            gate.waiters.append(waiter)
        try:
            await event.wait()
        finally:
            with self._changed:
                if waiter in gate.waiters:
                    gate.waiters.remove(waiter)

    def refuse_next(self, refusal: Refusal) -> None:
        """Refuse the coming `refusal.times` (or 1) calls, whatever they ask."""
        with self._changed:
            self._ordered.extend([refusal] * (refusal.times or 1))

    def take_ordered_refusal(self) -> Refusal | None:
        with self._changed:
            return self._ordered.popleft() if self._ordered else None

    def failures_of(self, key: FailureKey) -> int:
        with self._changed:
            return self._failures[key]

    def count_failure(self, key: FailureKey) -> None:
        with self._changed:
            if len(self._failures) >= MAX_FAILURE_KEYS:
                self._failures.clear()
            self._failures[key] += 1

    def _gate(self, name: str) -> _Gate:
        return self._gates.setdefault(name, _Gate())
