"""The table of stop reasons, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from agents.domain.endings import Ending, is_success, stop_reason_of
from agents.models.runs import StopReason

DEFERRED = {"terminal_reason": "tool_deferred"}
ABORTED = {
    "subtype": "error_during_execution",
    "is_error": True,
    "terminal_reason": "aborted_tools",
}


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({"stop_cause": "person", **ABORTED}, StopReason.CANCELLED),
        ({"stop_cause": "person", **DEFERRED}, StopReason.CANCELLED),
        ({"stop_cause": "lease"}, StopReason.CANCELLED),
        ({"stop_cause": "shutdown", "has_result": False}, StopReason.CANCELLED),
        ({"stop_cause": "parking", **ABORTED}, StopReason.CANCELLED),
        (ABORTED, StopReason.CANCELLED),
        ({"terminal_reason": "aborted_streaming"}, StopReason.CANCELLED),
        (DEFERRED, StopReason.PARKED),
        ({"stop_cause": "shutdown", **DEFERRED}, StopReason.PARKED),
        ({"stop_cause": "timeout", **ABORTED}, StopReason.TIMEOUT),
        ({"stop_cause": "timeout", "has_result": False}, StopReason.TIMEOUT),
        ({"stop_cause": "budget", **ABORTED}, StopReason.BUDGET_EXCEEDED),
        ({"subtype": "error_max_budget_usd"}, StopReason.BUDGET_EXCEEDED),
        ({"terminal_reason": "budget_exhausted"}, StopReason.BUDGET_EXCEEDED),
        ({"stop_cause": "max_steps", **ABORTED}, StopReason.MAX_STEPS),
        ({"subtype": "error_max_turns", "is_error": True}, StopReason.MAX_STEPS),
        ({"terminal_reason": "max_turns"}, StopReason.MAX_STEPS),
        ({"stop_cause": "failures", **ABORTED}, StopReason.TOO_MANY_FAILURES),
        ({"terminal_reason": "hook_stopped"}, StopReason.TOO_MANY_FAILURES),
        ({"is_denied_and_stopped": True, **ABORTED}, StopReason.DENIED),
        ({"terminal_reason": "prompt_too_long"}, StopReason.CONTEXT_LIMIT),
        ({"terminal_reason": "blocking_limit"}, StopReason.CONTEXT_LIMIT),
        ({"terminal_reason": "rapid_refill_breaker"}, StopReason.CONTEXT_LIMIT),
        (
            {"model_stop_reason": "model_context_window_exceeded"},
            StopReason.CONTEXT_LIMIT,
        ),
        ({"stop_cause": "trouble", "has_result": False}, StopReason.ERROR),
        ({"is_error": True}, StopReason.ERROR),
        ({"subtype": "error_during_execution"}, StopReason.ERROR),
        ({"has_result": False}, StopReason.ERROR),
        ({"completed_task": True}, StopReason.COMPLETE_TASK),
        ({}, StopReason.NO_TOOL_CALLS),
        # The first that fits.
        ({"stop_cause": "person", "is_denied_and_stopped": True}, StopReason.CANCELLED),
        ({"stop_cause": "timeout", "subtype": "error_max_turns"}, StopReason.TIMEOUT),
        ({"is_error": True, "completed_task": True}, StopReason.ERROR),
    ],
)
def test_the_first_row_that_fits(known: dict[str, Any], reason: StopReason) -> None:
    assert stop_reason_of(Ending(**known)) == reason


@pytest.mark.parametrize("reason", list(StopReason))
def test_only_the_last_two_are_a_success(reason: StopReason) -> None:
    is_last = reason in (StopReason.COMPLETE_TASK, StopReason.NO_TOOL_CALLS)

    assert is_success(reason) == is_last
    assert not is_success(reason, has_unresolved_failure=True)
