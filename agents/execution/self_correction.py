"""Self-correction in a turn: what the hooks and the stream tell, counted and told.

The counting is `policy.corrections`; here it meets the turn's rows and the model. Most
failures are heard of by the hook, which alone can give the model advice. An input that
the CLI itself refuses reaches no hook, and is counted when its result comes by.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from agents.domain import steps
from agents.policy.corrections import FailedCall, Refusal, StepFailure
from agents.policy.modes import Effect

from .database import in_database
from .turn import Turn

logger = logging.getLogger(__name__)

_REFUSED_INPUT = "<tool_use_error>"
# Of calls beside one that failed: they were not made.
_NOT_MADE = ("<tool_use_error>Cancelled", "<tool_use_error>Sibling")


@dataclass(frozen=True, slots=True)
class HeardCall:
    """A call as any of its tellers knows it."""

    tool_use_id: str
    tool_name: str
    tool_input: dict[str, Any]
    agent_id: str = ""


def refuse(turn: Turn, call: HeardCall, effect: Effect) -> Refusal | None:
    """Why this call should not run; one that ends the turn has ended it.

    Where a person is asked anyway, an open circuit leaves it to them.
    """
    refusal = turn.corrections.review(call.tool_name, call.tool_input, call.agent_id)
    if refusal is None or (refusal.may_be_approved and effect == Effect.ASK):
        return None
    turn.corrections.refused(call.tool_name, call.agent_id)
    if refusal.ends_turn:
        turn.stop("failures")
    return refusal


def heard_success(turn: Turn, call: HeardCall) -> None:
    if call.tool_use_id not in turn.judged_calls:
        turn.judged_calls.add(call.tool_use_id)
        turn.corrections.succeeded(call.tool_name, call.agent_id)


async def heard_failure(turn: Turn, call: HeardCall, error: str) -> str:
    """Count a failure once, whoever tells of it. Returns: what the model is told."""
    if call.tool_use_id in turn.judged_calls or call.tool_use_id in turn.settled:
        return ""
    turn.judged_calls.add(call.tool_use_id)
    judged = turn.corrections.failed(
        FailedCall(call.tool_name, call.tool_input, error, call.agent_id)
    )
    turn.has_failed_step |= isinstance(judged, StepFailure)
    try:
        await in_database(
            steps.record_failure,
            turn.run,
            judged,
            step=turn.steps,
            tool_use_id=call.tool_use_id,
            agent_id=call.agent_id,
            error=error,
        )
    except Exception:
        # The advice matters more than its card.
        logger.exception("correction not recorded in %s", turn.session_id)
    return judged.text


async def heard_result(turn: Turn, tool_use_id: str, text: str) -> None:
    """A result that is an error, of a call that no hook may have told of."""
    call = turn.known_calls.get(tool_use_id)
    if call is None or not text.startswith(_REFUSED_INPUT):
        return
    if not text.startswith(_NOT_MADE):
        tool_name, tool_input, agent_id = call
        heard = HeardCall(tool_use_id, tool_name, tool_input, agent_id)
        await heard_failure(turn, heard, text)
