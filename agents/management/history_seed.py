"""A long history of made-up sessions, to see and measure how pages and search bear it.

Deterministic: the same seed gives the same rows, ids and times included. Written in
bulk, so no event is published and no agent starts.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

from django.db import transaction

from agents.models import AgentSession, Message, MessageBranch, Run, User
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.runs import RunState, StopReason
from agents.models.sessions import SessionStatus
from agents.rendering.text import preview

NEEDLE_EVERY = 97
"""Each so-manieth message holds a word that no other does; see `needle`."""
_FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)
_SESSIONS_AT_ONCE = 250
_SYLLABLES = "ba be bo da de di do fa fi ga go ka ke la le li lo ma me mi na no pa ra"
_VOCABULARY = 3000
_STREAM_WORDS = 200_000
_MODES = ("agent", "ask", "plan")
_MODELS = ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5")
_OUTCOMES = (
    (SessionStatus.COMPLETED, StopReason.NO_TOOL_CALLS),
    (SessionStatus.COMPLETED, StopReason.COMPLETE_TASK),
    (SessionStatus.STOPPED, StopReason.CANCELLED),
    (SessionStatus.ERROR, StopReason.ERROR),
)
_TURN = (
    (MessageRole.USER, 8, 60),
    (MessageRole.TOOL_CALL, 4, 12),
    (MessageRole.TOOL_RESULT, 10, 150),
    (MessageRole.ASSISTANT, 15, 120),
)


def needle(number: int) -> str:
    """The word that only message `number` of the whole history holds."""
    return f"ticket-{number:07d}"


class Words:
    """Texts in which few words are common and most are rare, as in real ones."""

    def __init__(self, rng: random.Random) -> None:
        syllables = _SYLLABLES.split()
        self.vocabulary = [
            "".join(rng.choices(syllables, k=rng.randint(1, 4)))
            for _ in range(_VOCABULARY)
        ]
        weights = list(accumulate(1 / place for place in range(1, _VOCABULARY + 1)))
        self._stream = rng.choices(
            self.vocabulary, cum_weights=weights, k=_STREAM_WORDS
        )
        self._rng = rng

    def text(self, shortest: int, longest: int) -> str:
        length = self._rng.randint(shortest, longest)
        start = self._rng.randrange(_STREAM_WORDS - length)
        return " ".join(self._stream[start : start + length])


@dataclass(slots=True)
class _Rows:
    sessions: list[AgentSession] = field(default_factory=list)
    branches: list[MessageBranch] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    @transaction.atomic
    def save(self) -> None:
        """In any order: what points at what is checked when the transaction ends."""
        AgentSession.objects.bulk_create(self.sessions)
        MessageBranch.objects.bulk_create(self.branches)
        Message.objects.bulk_create(self.messages, batch_size=1000)
        Run.objects.bulk_create(self.runs)


class HistorySeeder:
    """Makes `sessions` sessions of `owner` that have `messages` messages together."""

    def __init__(self, owner: User, *, sessions: int, messages: int, seed: int) -> None:
        self._owner = owner
        self._sessions = sessions
        self._messages = messages
        self._rng = random.Random(seed)  # noqa: S311  made-up texts, no secrets
        self.words = Words(self._rng)
        self._number = 0

    def run(self) -> Iterator[int]:
        """Write everything, a transaction a batch. Yields: how many sessions stand."""
        for start in range(0, self._sessions, _SESSIONS_AT_ONCE):
            stop = min(start + _SESSIONS_AT_ONCE, self._sessions)
            rows = _Rows()
            for place in range(start, stop):
                self._add_session(rows, place)
            rows.save()
            yield stop

    def _add_session(self, rows: _Rows, place: int) -> None:
        count = self._share_of(place)
        session = self._session(place, count)
        main = self._branch(session)
        session.active_branch = main
        rows.sessions.append(session)
        rows.branches.append(main)
        messages = [self._message(session, main, seq) for seq in range(1, count + 1)]
        if place % 10 == 0 and count > 2 * len(_TURN):
            rows.branches.append(self._fork(session, main, messages))
        rows.messages += messages
        if messages:
            rows.runs.append(self._run(session, main, messages[0]))
            session.last_preview = preview(messages[0].text, 120)

    def _share_of(self, place: int) -> int:
        """The messages, dealt out as evenly as they can be."""
        each, left = divmod(self._messages, self._sessions)
        return each + (place < left)

    def _session(self, place: int, count: int) -> AgentSession:
        rng, at = self._rng, _FIRST_DAY + timedelta(hours=place)
        status = _OUTCOMES[place % len(_OUTCOMES)][0]
        return AgentSession(
            pk=self._id(),
            owner=self._owner,
            name=self.words.text(2, 6)[:200],
            name_is_automatic=False,
            status=status if count else SessionStatus.IDLE,
            mode=rng.choice(_MODES),
            owns_cwd=False,
            cost_usd_micros=rng.randrange(2_000_000),
            input_tokens=rng.randrange(200_000),
            output_tokens=rng.randrange(20_000),
            last_message_seq=count,
            message_count=count,
            created_at=at,
            updated_at=at + timedelta(seconds=count),
            closed_at=at + timedelta(hours=1) if place % 3 == 0 else None,
        )

    def _branch(self, session: AgentSession, **fork: Any) -> MessageBranch:
        return MessageBranch(
            pk=self._id(),
            session=session,
            sdk_session_id=self._id(),
            created_at=session.created_at,
            **fork,
        )

    def _fork(
        self, session: AgentSession, main: MessageBranch, messages: list[Message]
    ) -> MessageBranch:
        """The second turn said in other words: what follows stands in a new branch."""
        branch = self._branch(
            session, parent_branch=main, fork_point_message=messages[len(_TURN)]
        )
        for message in messages[2 * len(_TURN) :]:
            message.branch = branch
        session.active_branch = branch
        return branch

    def _message(
        self, session: AgentSession, branch: MessageBranch, seq: int
    ) -> Message:
        role, shortest, longest = _TURN[(seq - 1) % len(_TURN)]
        text = self.words.text(shortest, longest)
        self._number += 1
        if self._number % NEEDLE_EVERY == 0:
            text = f"{text} {needle(self._number)}"
        is_tool = role in (MessageRole.TOOL_CALL, MessageRole.TOOL_RESULT)
        is_call, is_result = (
            role == MessageRole.TOOL_CALL,
            role == MessageRole.TOOL_RESULT,
        )
        return Message(
            pk=self._id(),
            session=session,
            branch=branch,
            seq=seq,
            role=role,
            author=self._owner if role == MessageRole.USER else None,
            text="" if is_call else text,
            content={"input": {"command": text}} if is_call else {},
            tool_name="Bash" if is_tool else "",
            tool_use_id=f"toolu_{(seq - 1) // len(_TURN)}" if is_tool else "",
            outcome=ToolOutcome.OK if is_result else "",
            created_at=session.created_at + timedelta(seconds=seq),
        )

    def _run(self, session: AgentSession, branch: MessageBranch, first: Message) -> Run:
        reason = next(
            reason for status, reason in _OUTCOMES if status == session.status
        )
        return Run(
            pk=self._id(),
            session=session,
            branch=branch,
            trigger_message=first,
            state=RunState.FINISHED,
            stop_reason=reason,
            success=reason in (StopReason.NO_TOOL_CALLS, StopReason.COMPLETE_TASK),
            model_actual=self._rng.choice(_MODELS),
            cost_usd_micros=session.cost_usd_micros,
            created_at=session.created_at,
            started_at=session.created_at,
            finished_at=session.updated_at,
        )

    def _id(self) -> uuid.UUID:
        return uuid.UUID(int=self._rng.getrandbits(128), version=4)
