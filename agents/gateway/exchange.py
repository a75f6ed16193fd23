"""One call and its answer: what is known of it, and the ways it can end badly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .answers import DO_NOT_RETRY, Answer
from .backoff import Backoff
from .bodies import is_conversation
from .headers import Headers
from .ledger import Books
from .lines import Line, Trouble
from .network import Clients

MESSAGES_PATH = "/v1/messages"
COUNT_PATH = "/v1/messages/count_tokens"


@dataclass(frozen=True, slots=True)
class IncomingCall:
    """What the CLI asked, read from the wire; header names in lower case."""

    path: str
    query: str
    headers: Headers
    body: bytes

    @property
    def agent_id(self) -> str:
        """The sub-agent that asks; empty for the main thread."""
        return dict(self.headers).get("x-claude-code-agent-id", "")

    @property
    def is_count(self) -> bool:
        return self.path == COUNT_PATH


@dataclass(frozen=True, slots=True)
class Services:
    """What all calls of a gateway share."""

    clients: Clients
    backoff: Backoff
    books: Books


@dataclass(frozen=True)
class Exchange:
    line: Line
    asked: IncomingCall
    answer: Answer
    services: Services
    base_url: str

    @cached_property
    def is_conversation(self) -> bool:
        """Sub-agents don't count: what the model saw is the main thread's last call."""
        asked = self.asked
        is_main_call = not asked.is_count and not asked.agent_id
        return is_main_call and is_conversation(asked.body)

    def report(self, trouble: Trouble) -> None:
        """Tell the session. Counting has limits of its own, and some don't offer it."""
        if self.asked.is_count:
            return
        self.line.report(trouble)
        if trouble.kind == "rate_limit" and trouble.retry_after_seconds:
            self.services.backoff.note(self.line.upstream, trouble.retry_after_seconds)

    async def give_up(self, trouble: Trouble) -> None:
        """End with an error of our own, or cut what has been started."""
        self.report(trouble)
        headers = [DO_NOT_RETRY] if trouble.is_hopeless else []
        status = 402 if trouble.kind == "budget" else 502
        await self.fail(status, trouble.message, headers)

    async def fail(
        self, status: int, message: str, headers: Headers | None = None
    ) -> None:
        if self.answer.has_started:
            self.answer.drop()
        else:
            await self.answer.error(status, message, headers)
