"""Why a turn ended: one table from what is known at its end to a stop reason.

The table is that of docs/architecture.md, "How a turn can end": the first row that
fits. It knows nothing of the SDK's types, only of the words that the CLI uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agents.models.runs import StopReason

CONTEXT_REASONS = {"blocking_limit", "prompt_too_long", "rapid_refill_breaker"}
_ABORTED = {"aborted_streaming", "aborted_tools"}
_DEFERRED = "tool_deferred"
WHOLE = (StopReason.COMPLETE_TASK, StopReason.NO_TOOL_CALLS)
"""The turn went to its own end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is known at a turn's end.

    `stop_cause` is why we ended it early, if we did; the rest is the CLI's last word,
    where there was one.
    """

    stop_cause: str = ""
    is_denied_and_stopped: bool = False
    has_result: bool = True
    subtype: str = "success"
    terminal_reason: str = ""
    model_stop_reason: str = ""
    is_error: bool = False
    completed_task: bool = False
    has_approved_plan: bool = False

    @property
    def is_cancelled(self) -> bool:
        if self.stop_cause in ("shutdown", "parking"):
            return self.terminal_reason != _DEFERRED
        if self.stop_cause in ("person", "lease"):
            return True
        is_unexplained = not self.stop_cause and not self.is_denied_and_stopped
        return is_unexplained and self.terminal_reason in _ABORTED

    @property
    def is_out_of_context(self) -> bool:
        """Refused as too long, or an answer that broke off as the window was full."""
        if self.terminal_reason in CONTEXT_REASONS:
            return True
        return self.model_stop_reason == "model_context_window_exceeded"

    @property
    def is_failed(self) -> bool:
        said_so = self.is_error or self.subtype != "success"
        return self.stop_cause == "trouble" or not self.has_result or said_so


_TABLE: tuple[tuple[StopReason, Callable[[Ending], bool]], ...] = (
    (StopReason.CANCELLED, lambda end: end.is_cancelled),
    (StopReason.PARKED, lambda end: end.terminal_reason == _DEFERRED),
    (StopReason.TIMEOUT, lambda end: end.stop_cause == "timeout"),
    (
        StopReason.BUDGET_EXCEEDED,
        lambda end: (
            end.stop_cause == "budget"
            or end.subtype == "error_max_budget_usd"
            or end.terminal_reason == "budget_exhausted"
        ),
    ),
    (
        StopReason.MAX_STEPS,
        lambda end: (
            end.stop_cause == "max_steps"
            or end.subtype == "error_max_turns"
            or end.terminal_reason == "max_turns"
        ),
    ),
    (
        StopReason.TOO_MANY_FAILURES,
        lambda end: (
            end.stop_cause == "failures"
            or (end.terminal_reason == "hook_stopped" and not end.has_approved_plan)
        ),
    ),
    (StopReason.DENIED, lambda end: end.is_denied_and_stopped),
    (StopReason.CONTEXT_LIMIT, lambda end: end.is_out_of_context),
    (StopReason.ERROR, lambda end: end.is_failed),
    (StopReason.COMPLETE_TASK, lambda end: end.completed_task),
)


def stop_reason_of(ending: Ending) -> StopReason:
    """The first that fits."""
    fits = (reason for reason, holds in _TABLE if holds(ending))
    return next(fits, StopReason.NO_TOOL_CALLS)


def is_success(reason: StopReason, *, has_unresolved_failure: bool = False) -> bool:
    """Whether the turn did what it was asked to, as far as anybody can tell."""
    return reason in WHOLE and not has_unresolved_failure
