"""Lines: the right of one CLI process to call its provider, by a token of its own.

A line ends with its process: closing it kills the token and the calls in flight.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from uuid import UUID

from agents.models.providers import ProviderKind

logger = logging.getLogger(__name__)

TroubleKind: TypeAlias = Literal[
    "auth",
    "rate_limit",
    "overloaded",
    "server_error",
    "unreachable",
    "cut",
    "bad_request",
    "budget",
]


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong with a call, as soon as it is known.

    `message` is a sentence for a person. Hopeless means that trying again can't help
    before somebody changes something.
    """

    kind: TroubleKind
    status: int | None
    message: str
    retry_after_seconds: float | None = None
    is_hopeless: bool = False


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where a line's calls go. The demo model's URL is the gateway's to know."""

    provider_id: UUID | None
    kind: str
    base_url: str
    api_key: str = field(repr=False)
    model_prefix: str = ""
    bare: bool = False
    allow_private: bool = False
    """Whether the owner vouches for this address, so that it may be a private one."""
    temperature: float | None = None
    """For the conversation's requests; the CLI has no option for it."""
    allowed_models: tuple[str, ...] = ()
    """Patterns of the models that the session's owner may use; none: every model."""

    @property
    def is_demo(self) -> bool:
        return self.kind == ProviderKind.DEMO


@dataclass(eq=False, slots=True)
class Line:
    """One CLI process's line to its provider; made by `Gateway.open_line`."""

    session_id: UUID
    upstream: Upstream
    on_trouble: Callable[[Trouble], None] | None = None
    is_side: bool = False
    """Whether its calls stand beside the turns, as those for titles do."""
    token: str = field(
        default_factory=lambda: secrets.token_urlsafe(32), init=False, repr=False
    )
    last_byte_at: float = field(default=0.0, init=False)
    """Loop time of the last call's start or the last byte of an answer."""
    model_actual: str | None = field(default=None, init=False)
    """The model that answered the conversation's last call, without prefix."""
    is_closed: bool = field(default=False, init=False)
    calls: set[asyncio.Task[Any]] = field(default_factory=set, init=False, repr=False)

    @property
    def calls_in_flight(self) -> int:
        return len(self.calls)

    def touch(self) -> None:
        self.last_byte_at = asyncio.get_running_loop().time()

    def report(self, trouble: Trouble) -> None:
        """Tell the listener; its own failure must not spoil the call."""
        if self.on_trouble is None or self.is_closed:
            return
        try:
            self.on_trouble(trouble)
        except Exception:
            logger.exception("session %s: trouble listener failed", self.session_id)


class Lines:
    """All open lines of the process, by token."""

    def __init__(self) -> None:
        self._by_token: dict[str, Line] = {}

    def open(self, line: Line) -> Line:
        line.touch()
        self._by_token[line.token] = line
        return line

    def find(self, token: str) -> Line | None:
        return self._by_token.get(token)

    def close(self, line: Line) -> None:
        """End the token and the line's calls; a second call does nothing."""
        line.is_closed = True
        self._by_token.pop(line.token, None)
        for call in list(line.calls):
            call.cancel()

    def close_all(self) -> None:
        for line in list(self._by_token.values()):
            self.close(line)
