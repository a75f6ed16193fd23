"""From what the SDK, the CLI and the gateway say to a class and a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from claude_agent_sdk import (
    CLIConnectionError,
    CLINotFoundError,
    ProcessError,
    ResultMessage,
)

from agents.errors import (
    AgentsError,
    CliMissingError,
    FolderMissingError,
    JailUnavailableError,
)
from agents.execution.client import ClientFailedError
from agents.execution.failures import failure_of_exception, outcome_of_result
from agents.execution.turn import Turn
from agents.gateway.lines import Trouble
from agents.models import Run
from agents.models.runs import RunKind, StopReason


def result(**fields: Any) -> ResultMessage:
    known: dict[str, Any] = {
        "subtype": "success",
        "duration_ms": 1,
        "duration_api_ms": 1,
        "is_error": True,
        "num_turns": 1,
        "session_id": "s",
    }
    return ResultMessage(**{**known, **fields})


def turn(**fields: Any) -> Turn:
    made = Turn(Run(), jailed=True)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("said", "stop_reason", "error_class"),
    [
        ({"is_error": False}, StopReason.NO_TOOL_CALLS, ""),
        ({"subtype": "error_max_turns"}, StopReason.MAX_STEPS, ""),
        ({"subtype": "error_max_budget_usd"}, StopReason.BUDGET_EXCEEDED, ""),
        ({"terminal_reason": "aborted_tools"}, StopReason.CANCELLED, ""),
        (
            {"terminal_reason": "prompt_too_long"},
            StopReason.CONTEXT_LIMIT,
            "context_limit",
        ),
        (
            {"is_error": False, "stop_reason": "model_context_window_exceeded"},
            StopReason.CONTEXT_LIMIT,
            "context_limit",
        ),
        ({"result": "Your credit balance is too low"}, StopReason.ERROR, "billing"),
        ({"api_error_status": 402}, StopReason.ERROR, "billing"),
        ({"api_error_status": 418}, StopReason.ERROR, "bad_request"),
        ({"api_error_status": 503}, StopReason.ERROR, "server_error"),
        ({"subtype": "error_during_execution"}, StopReason.ERROR, "server_error"),
    ],
)
async def test_the_last_word_of_the_sdk(
    said: dict[str, Any], stop_reason: StopReason, error_class: str
) -> None:
    outcome = outcome_of_result(turn(), result(**said))

    assert (outcome.stop_reason, outcome.error_class) == (stop_reason, error_class)
    assert outcome.success == (stop_reason == StopReason.NO_TOOL_CALLS)
    assert bool(outcome.error_text) == bool(error_class)


async def test_a_summary_that_did_not_come_is_no_success() -> None:
    summing = turn(compaction_error="Not enough messages to compact.")
    summing.run.kind = RunKind.COMPACT

    outcome = outcome_of_result(summing, result(is_error=False))
    told = outcome.error_text
    summing.is_compacted = True

    assert outcome.error_class == "not_compacted"
    assert told.endswith("It said: Not enough messages to compact.")
    assert outcome_of_result(summing, result(is_error=False)).success


async def test_the_gateway_knows_the_cause_better_than_the_cli() -> None:
    cause = Trouble("unreachable", None, "host:1 refused the connection.")
    outcome = outcome_of_result(
        turn(trouble=cause, last_error="rate_limit"), result(api_error_status=502)
    )

    assert outcome.error_class == "unreachable"
    assert outcome.error_text == "host:1 refused the connection."


async def test_a_credit_that_is_used_up_is_told_apart_from_a_bad_request() -> None:
    cause = Trouble("bad_request", 402, "Pay first.", is_hopeless=True)
    outcome = outcome_of_result(turn(trouble=cause), result())

    assert outcome.error_class == "billing"


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        (FolderMissingError("gone"), "folder_missing"),
        (JailUnavailableError("no jail"), "jail_unavailable"),
        (AgentsError("not like this"), "refused"),
        (KeyError("ours"), "internal"),
        (ClientFailedError(CliMissingError("none"), ""), "cli_missing"),
        (ClientFailedError(CLINotFoundError("none"), ""), "cli_missing"),
        (
            ClientFailedError(CLIConnectionError("Working directory x"), ""),
            "folder_missing",
        ),
        (ClientFailedError(TimeoutError(), ""), "start_timeout"),
        (
            ClientFailedError(Exception("Control request timeout: initialize"), ""),
            "start_timeout",
        ),
        (ClientFailedError(ProcessError("exit"), "bwrap: no"), "jail_failed"),
        (ClientFailedError(ProcessError("exit"), "claude: not found"), "cli_missing"),
        (ClientFailedError(EOFError("ended"), ""), "cli_died"),
        (ClientFailedError(KeyError("ours"), ""), "internal"),
    ],
)
def test_what_kept_a_client_from_working(error: Exception, error_class: str) -> None:
    failure = failure_of_exception(error)

    assert failure.error_class == error_class
    assert failure.sentence
