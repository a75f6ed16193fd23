"""Self-correction: what failures of tools mean for the calls after them.

A *chain* is the failures of one tool in a row, counted apart for each agent, whatever
its arguments are; a success of the tool ends it, and so does the turn. The first three
failures are *cycles*: each is fed back with advice. The fourth fails the step and opens
the *circuit*: the tool runs no more in this turn, unless a person approves a call.

A call that failed three times to the letter is refused before it fails a fourth time.
Who insists against a refusal ends the turn.

Refused calls are no failures. Everything here is counting; nothing is run again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .failed_calls import Advice, advise

MAX_CYCLES = 3
MAX_IDENTICAL = 3
MAX_INSISTING = 3
"""Refusals of an open circuit before the turn ends."""

REPEATED = (
    "This exact call has failed {count} times in a row, so it was not run again. Change"
    " its input, use another tool, or say what is missing. Making it once more ends"
    " your turn."
)
CIRCUIT_OPEN = (
    "{tool} has failed {count} times in a row, so it is not run any more in this turn"
    " unless a person approves the call. Use a different approach, or explain what is"
    " missing."
)
GIVE_UP = (
    "{tool} has failed {count} times in a row. Stop retrying this tool; explain what is"
    " missing or use a different approach."
)
CORRECT = "Correction {cycle} of {max}: {tool} failed ({kind})."


@dataclass(frozen=True, slots=True)
class FailedCall:
    """One call that failed, and what its error said."""

    tool_name: str
    tool_input: Mapping[str, Any]
    error: str
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class Correction:
    """The n-th failure of a chain; `text` is what the model is told."""

    tool_name: str
    cycle: int
    advice: Advice
    text: str
    max_cycles: int = MAX_CYCLES


@dataclass(frozen=True, slots=True)
class StepFailure:
    """The chain has failed; from now on the circuit is open."""

    tool_name: str
    failures: int
    advice: Advice
    text: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is not run; after the last one of its kind the turn ends."""

    text: str
    ends_turn: bool = False
    may_be_approved: bool = False
    """Whether a person who is asked anyway may let it run all the same."""


@dataclass(slots=True)
class _Chain:
    failures: int = 0
    last_input: str = ""
    identical: int = 0
    refusals: int = 0

    @property
    def is_open(self) -> bool:
        return self.failures > MAX_CYCLES

    def is_repeated(self, tool_input: str) -> bool:
        return self.identical >= MAX_IDENTICAL and tool_input == self.last_input


@dataclass(slots=True)
class Corrections:
    """All chains of one turn."""

    _chains: dict[tuple[str, str], _Chain] = field(default_factory=dict)
    has_unresolved_failure: bool = False
    """Whether a step failed and no call has succeeded since."""

    def review(
        self, tool_name: str, tool_input: Mapping[str, Any], agent_id: str = ""
    ) -> Refusal | None:
        """Whether a call that is about to run should not; looks only."""
        chain = self._chains.get((tool_name, agent_id))
        if chain is None:
            return None
        if chain.is_repeated(identity(tool_input)):
            return Refusal(
                REPEATED.format(count=chain.identical), ends_turn=chain.refusals >= 1
            )
        if chain.is_open:
            return Refusal(
                CIRCUIT_OPEN.format(tool=tool_name, count=chain.failures),
                ends_turn=chain.refusals >= MAX_INSISTING - 1,
                may_be_approved=True,
            )
        return None

    def refused(self, tool_name: str, agent_id: str = "") -> None:
        """Such a refusal was delivered."""
        chain = self._chains.get((tool_name, agent_id))
        if chain is not None:
            chain.refusals += 1

    def succeeded(self, tool_name: str, agent_id: str = "") -> None:
        self._chains.pop((tool_name, agent_id), None)
        self.has_unresolved_failure = False

    def failed(self, call: FailedCall) -> Correction | StepFailure:
        chain = self._chains.setdefault((call.tool_name, call.agent_id), _Chain())
        chain.failures += 1
        chain.refusals = 0
        same = identity(call.tool_input)
        chain.identical = chain.identical + 1 if same == chain.last_input else 1
        chain.last_input = same
        advice = advise(call.tool_name, call.error)
        if chain.is_open:
            self.has_unresolved_failure = True
            text = GIVE_UP.format(tool=call.tool_name, count=chain.failures)
            return StepFailure(call.tool_name, chain.failures, advice, text)
        return Correction(
            call.tool_name, chain.failures, advice, _text(call, chain.failures, advice)
        )


def identity(tool_input: Mapping[str, Any]) -> str:
    canonical = json.dumps(tool_input, sort_keys=True, default=str)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _text(call: FailedCall, cycle: int, advice: Advice) -> str:
    lines = [
        CORRECT.format(
            cycle=cycle, max=MAX_CYCLES, tool=call.tool_name, kind=advice.kind.value
        ),
        advice.suggestion,
    ]
    if advice.alternatives:
        lines.append(f"Other tools that may help: {', '.join(advice.alternatives)}.")
    return "\n".join(lines)
