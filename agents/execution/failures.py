"""How a turn ended, in our words: stop reason, error class, and what to do next."""

from __future__ import annotations

import re
from dataclasses import dataclass

from claude_agent_sdk import (
    ClaudeSDKError,
    CLIConnectionError,
    CLINotFoundError,
    ResultMessage,
)

from agents.domain.endings import WHOLE, Ending, stop_reason_of
from agents.domain.runs import RunOutcome
from agents.errors import (
    AgentsError,
    CliMissingError,
    FolderMissingError,
    JailUnavailableError,
)
from agents.gateway.lines import Trouble
from agents.models.runs import StopReason

from .client import ClientFailedError
from .turn import Turn


@dataclass(frozen=True, slots=True)
class Failure:
    error_class: str
    sentence: str


AUTH = Failure(
    "auth",
    "The provider refuses the key. Check it under Settings → Providers, then try"
    " again.",
)
BILLING = Failure(
    "billing",
    "The provider reports that its credit is used up. Add credit there or choose"
    " another provider, then try again.",
)
RATE_LIMIT = Failure(
    "rate_limit",
    "The provider's rate limit was reached and stayed so. Wait a little, then try"
    " again.",
)
OVERLOADED = Failure(
    "overloaded",
    "The provider is overloaded and stayed so. Wait a little, then try again.",
)
SERVER_ERROR = Failure(
    "server_error",
    "The provider reported an error of its own several times. Try again later.",
)
UNREACHABLE = Failure(
    "unreachable",
    "The provider could not be reached. Check its address under Settings → Providers"
    " and the network of this server, then try again.",
)
CUT = Failure(
    "stream_cut",
    "The connection to the provider broke off several times. Try again.",
)
MODEL_NOT_FOUND = Failure(
    "model_not_found",
    "The provider does not know this model, or its address is wrong. Choose another"
    " model in the session's settings or check the provider's base URL, then try"
    " again.",
)
BAD_REQUEST = Failure("bad_request", "The provider refused the request as it was sent.")
CONTEXT_LIMIT = Failure(
    "context_limit",
    "The conversation has become too long for the model, and nothing of it was lost."
    " Have it summarised, let the model start afresh, or go on in a new session.",
)
NOT_COMPACTED = Failure(
    "not_compacted", "The conversation could not be summarised. It is as it was."
)
CLI_MISSING = Failure(
    "cli_missing",
    "The Claude Code CLI is missing or does not start. Install the requirements"
    " again (make run does), then restart the server.",
)
FOLDER_MISSING = Failure(
    "folder_missing",
    "The session's folder does not exist any more. Put it back, or start a new"
    " session in another folder.",
)
CLI_DIED = Failure(
    "cli_died",
    "The agent's process ended unexpectedly. What it had written is kept; try again.",
)
JAIL_FAILED = Failure(
    "jail_failed",
    "The jail around the agent could not be built. Run manage.py doctor on the server"
    " to see why.",
)
START_TIMEOUT = Failure(
    "start_timeout", "The agent's process did not start in time. Try again."
)
INTERNAL = Failure(
    "internal",
    "OpenSwarm itself failed in this turn; the server's log has the details. Try"
    " again.",
)

_BY_TROUBLE = {
    "auth": AUTH,
    "rate_limit": RATE_LIMIT,
    "overloaded": OVERLOADED,
    "server_error": SERVER_ERROR,
    "unreachable": UNREACHABLE,
    "cut": CUT,
    "bad_request": BAD_REQUEST,
}
# Its sentences name the host, or what was refused, and what to do.
_EXPLAINED_BY_THE_GATEWAY = (UNREACHABLE, BAD_REQUEST)
_BY_ERROR = {
    "authentication_failed": AUTH,
    "billing_error": BILLING,
    "rate_limit": RATE_LIMIT,
    "overloaded": OVERLOADED,
    "server_error": SERVER_ERROR,
    "model_not_found": MODEL_NOT_FOUND,
}
_BY_STATUS = {
    401: AUTH,
    402: BILLING,
    403: AUTH,
    404: MODEL_NOT_FOUND,
    429: RATE_LIMIT,
    529: OVERLOADED,
}
QUOTED_CHARACTERS = 300


def outcome_of_result(turn: Turn, result: ResultMessage) -> RunOutcome:
    """Map the SDK's last word; a failed turn never looks completed."""
    ending = Ending(
        stop_cause=turn.stop_cause,
        is_denied_and_stopped=turn.is_denied_and_stopped,
        subtype=result.subtype,
        terminal_reason=result.terminal_reason or "",
        model_stop_reason=result.stop_reason or "",
        is_error=result.is_error,
        completed_task=turn.completed_task,
        has_approved_plan=turn.has_approved_plan,
    )
    reason = stop_reason_of(ending)
    if reason == StopReason.CONTEXT_LIMIT:
        return error_outcome(turn, CONTEXT_LIMIT, reason)
    if turn.stop_cause == "trouble":
        return outcome_of_stop(turn)
    if reason == StopReason.ERROR:
        return error_outcome(turn, _failure_of_result(turn, result))
    if turn.is_compaction and not turn.is_compacted and reason in WHOLE:
        return error_outcome(turn, _failure_of_compaction(turn))
    return outcome(turn, reason)


def outcome_of_stop(turn: Turn) -> RunOutcome:
    """The turn was ended early: by a person, a limit, or since it was hopeless."""
    if turn.stop_cause == "trouble" and turn.trouble is not None:
        return error_outcome(turn, failure_of_trouble(turn.trouble))
    ending = Ending(
        stop_cause=turn.stop_cause,
        is_denied_and_stopped=turn.is_denied_and_stopped,
        has_result=False,
    )
    return outcome(turn, stop_reason_of(ending))


def outcome(turn: Turn, reason: StopReason) -> RunOutcome:
    return RunOutcome(
        stop_reason=reason,
        steps=turn.steps,
        model_actual=turn.model_actual,
        has_unresolved_failure=turn.corrections.has_unresolved_failure,
    )


def error_outcome(
    turn: Turn, failure: Failure, reason: StopReason = StopReason.ERROR
) -> RunOutcome:
    return RunOutcome(
        stop_reason=reason,
        error_class=failure.error_class,
        error_text=failure.sentence,
        steps=turn.steps,
        model_actual=turn.model_actual,
    )


def failure_of_trouble(trouble: Trouble) -> Failure:
    if trouble.status in _BY_STATUS:
        return _BY_STATUS[trouble.status]
    failure = _BY_TROUBLE.get(trouble.kind, SERVER_ERROR)
    if failure in _EXPLAINED_BY_THE_GATEWAY and trouble.message:
        return Failure(failure.error_class, trouble.message)
    return failure


def _failure_of_result(turn: Turn, result: ResultMessage) -> Failure:
    """The gateway saw the cause at its source; the CLI's word comes second."""
    text = result.result or ""
    if "credit balance" in text.lower():
        return BILLING
    if turn.trouble is not None:
        return failure_of_trouble(turn.trouble)
    status = result.api_error_status
    if status is not None:
        return _BY_STATUS.get(status) or _by_range(status, text)
    return _BY_ERROR.get(turn.last_error, SERVER_ERROR)


def _failure_of_compaction(turn: Turn) -> Failure:
    """The CLI calls it a success when nothing was summarised."""
    if turn.trouble is not None and turn.trouble.status != 400:
        return failure_of_trouble(turn.trouble)
    words = " ".join(turn.compaction_error.split())[:QUOTED_CHARACTERS]
    sentence = f"{NOT_COMPACTED.sentence} It said: {words}" if words else None
    return Failure(NOT_COMPACTED.error_class, sentence or NOT_COMPACTED.sentence)


def _by_range(status: int, text: str) -> Failure:
    if status >= 500:
        return SERVER_ERROR
    words = " ".join(text.split())[:QUOTED_CHARACTERS]
    sentence = f"{BAD_REQUEST.sentence} It said: {words}" if words else None
    return Failure(BAD_REQUEST.error_class, sentence or BAD_REQUEST.sentence)


def failure_of_exception(error: BaseException) -> Failure:
    """What a client that could not start, or died, means for the person."""
    match error:
        case ClientFailedError():
            return _failure_of_client(error.cause, error.stderr_tail)
        case FolderMissingError(user_message=sentence):
            return Failure(FOLDER_MISSING.error_class, sentence)
        case JailUnavailableError(user_message=sentence):
            return Failure("jail_unavailable", sentence)
        case AgentsError(user_message=sentence):
            return Failure("refused", sentence)
        case _:
            return INTERNAL


def _failure_of_client(cause: Exception, stderr_tail: str) -> Failure:
    match cause:
        case CliMissingError() | CLINotFoundError():
            return CLI_MISSING
        case CLIConnectionError() if "Working directory" in str(cause):
            return FOLDER_MISSING
        case TimeoutError():
            return START_TIMEOUT
        case _ if "Control request timeout" in str(cause):
            return START_TIMEOUT
        case ClaudeSDKError() | EOFError():
            return _died(stderr_tail)
        case _:
            return INTERNAL


def _died(stderr_tail: str) -> Failure:
    if re.search(r"bwrap: ", stderr_tail):
        return JAIL_FAILED
    if re.search(r"not found|No such file", stderr_tail):
        return CLI_MISSING
    return CLI_DIED
