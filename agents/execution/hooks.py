"""The callbacks that the SDK calls around each tool: the gate, and what it records.

A callback never raises into the SDK: the gate fails closed, the recorders log.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    CanUseTool,
    PermissionResult,
    PermissionResultDeny,
    ToolPermissionContext,
)

from agents.domain import blocks
from agents.models.messages import ToolOutcome
from agents.policy.modes import HAND_IN_PLAN, Effect
from agents.policy.tools import COMPLETE_TASK, INVOKE_AGENT, canonical_name

from . import metadata
from .approval import Call, Gate
from .database import in_database
from .self_correction import HeardCall, heard_failure, heard_success, refuse
from .turn import Turn

logger = logging.getLogger(__name__)

HookOutput = dict[str, Any]
Hook = Callable[[Any, str | None, Any], Awaitable[HookOutput]]

GATE_FAILED = "OpenSwarm could not decide this call, so it was not run."
PLAN_APPROVED = "The plan is approved."
NEXT_TURN = (
    "The plan is approved. End this turn now: the next one begins at once, and has the"
    " tools to carry it out."
)
NO_TURN = "The turn is over; this call was not run."


def create_sdk_hooks(gate: Gate) -> tuple[CanUseTool, Hook, Hook]:
    """Returns: (can_use_tool, pre_tool_hook, post_tool_hook) for one client.

    `post_tool_hook` serves PostToolUse and PostToolUseFailure.
    """

    async def can_use_tool(
        tool_name: str, tool_input: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResult:
        call = Call(
            context.tool_use_id or "", tool_name, tool_input, context.agent_id or ""
        )
        turn = gate.turn
        if turn is None:
            return PermissionResultDeny(message=NO_TURN)
        try:
            await _record_call(turn, call)
            await turn.files_recorded.wait()
            return _lend_time(turn, call, await gate.answer(turn, call))
        except Exception:
            logger.exception("gate failed for %s in %s", tool_name, turn.session_id)
            return PermissionResultDeny(message=GATE_FAILED)

    async def pre_tool_hook(
        data: Any, tool_use_id: str | None, context: Any
    ) -> HookOutput:
        turn = gate.turn
        if turn is None:
            return _decision("deny", NO_TURN)
        try:
            return await _review(gate, turn, data, tool_use_id)
        except Exception:
            logger.exception("gate failed in %s", turn.session_id)
            return _decision("deny", GATE_FAILED)

    async def post_tool_hook(
        data: Any, tool_use_id: str | None, context: Any
    ) -> HookOutput:
        turn = gate.turn
        if turn is None:
            return {}
        call = _call(data, tool_use_id)
        turn.take_time_back(call.tool_use_id)
        edit = _words_of_edit(gate, call)
        try:
            await _record_outcome(turn, call, data)
        except Exception:
            # The result message brings it again; the model must hear of the edit.
            logger.exception("result not recorded in %s", turn.session_id)
        advice = await _judge(turn, call, data)
        told = _tell(data["hook_event_name"], edit, advice)
        return {**told, **_end_planning(turn, call)}

    return can_use_tool, pre_tool_hook, post_tool_hook


async def _review(
    gate: Gate, turn: Turn, data: Any, tool_use_id: str | None
) -> HookOutput:
    """Deny by policy, else wait for a person while that is hot, then ask or put aside.

    Never "allow": then can_use_tool would not be called, and edited input and a
    person's words travel through it alone.
    """
    call = _call(data, tool_use_id)
    gate.note_permission_mode(call.tool_use_id, data["permission_mode"])
    _note_config_dir(gate, data)
    await _record_call(turn, call)
    if turn.has_approved_plan:
        # A CLI that took up the plan after a restart doesn't end its turn by itself.
        await gate.record_denial(turn, call, NEXT_TURN)
        return _decision("deny", NEXT_TURN)
    verdict = await gate.review(turn, call)
    if verdict.effect == Effect.DENY:
        return _decision("deny", verdict.reason)
    refusal = refuse(turn, _heard(call), verdict.effect)
    if refusal is not None:
        await gate.record_denial(turn, call, refusal.text)
        return _decision("deny", refusal.text)
    is_put_aside = await gate.hold(turn, call, verdict)
    return _decision("defer" if is_put_aside else "ask", verdict.reason)


def _lend_time(turn: Turn, call: Call, answer: PermissionResult) -> PermissionResult:
    """An agent that is asked has limits of its own, and may wait for a person."""
    if answer.behavior == "allow" and call.tool_name.endswith(f"__{INVOKE_AGENT}"):
        turn.lend_time(call.tool_use_id)
    return answer


def _call(data: Any, tool_use_id: str | None) -> Call:
    return Call(
        tool_use_id or data.get("tool_use_id") or "",
        data["tool_name"],
        data.get("tool_input") or {},
        data.get("agent_id") or "",
    )


def _note_config_dir(gate: Gate, data: Any) -> None:
    """A resumed CLI works in a temporary configuration folder; the hook tells which.

    `transcript_path` is `<config>/projects/<project>/<session>.jsonl`.
    """
    path = data.get("transcript_path")
    if path and data.get("agent_id") is None:
        gate.places.config_dir = Path(path).parents[2]


async def _record_call(turn: Turn, call: Call) -> None:
    await in_database(
        blocks.record_tool_call,
        turn.run,
        tool_use_id=call.tool_use_id,
        tool_name=call.tool_name,
        tool_input=call.tool_input,
        parent_tool_use_id=turn.sub_agents.get(call.agent_id, ""),
    )
    metadata.tool_was_used(turn.session_id)


async def _record_outcome(turn: Turn, call: Call, data: Any) -> None:
    outcome = _outcome(data)
    if _completes_task(call) and outcome == ToolOutcome.OK:
        turn.completed_task = True
    await in_database(
        blocks.record_tool_result,
        turn.run,
        tool_use_id=call.tool_use_id,
        outcome=outcome,
        text="" if outcome == ToolOutcome.OK else str(data.get("error") or ""),
        elapsed_ms=_milliseconds(data.get("duration_ms")),
    )
    metadata.tool_was_used(turn.session_id)


def _completes_task(call: Call) -> bool:
    """A sub-agent that is done with its part does not end the turn's task."""
    return canonical_name(call.tool_name) == COMPLETE_TASK and not call.agent_id


def _outcome(data: Any) -> ToolOutcome:
    if data["hook_event_name"] != "PostToolUseFailure":
        return ToolOutcome.OK
    return ToolOutcome.CANCELLED if data.get("is_interrupt") else ToolOutcome.ERROR


async def _judge(turn: Turn, call: Call, data: Any) -> str:
    """Count the call's end. Returns: the advice that the model is given."""
    match _outcome(data):
        case ToolOutcome.OK:
            heard_success(turn, _heard(call))
        case ToolOutcome.ERROR:
            error = str(data.get("error") or "")
            return await heard_failure(turn, _heard(call), error)
    return ""


def _heard(call: Call) -> HeardCall:
    return HeardCall(call.tool_use_id, call.tool_name, call.tool_input, call.agent_id)


def _milliseconds(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) else None


def _words_of_edit(gate: Gate, call: Call) -> str:
    """The model sees its own input in the history, so it is told what really ran."""
    edited = gate.take_edit(call.tool_use_id)
    if edited is None:
        return ""
    return (
        "The user edited the input of this call before approving it."
        f" What really ran: {call.tool_name} {edited}"
    )


def _end_planning(turn: Turn, call: Call) -> HookOutput:
    """This process has no tools to carry the plan out; another turn gets them."""
    if not turn.has_approved_plan or call.tool_name != HAND_IN_PLAN:
        return {}
    return {"continue_": False, "stopReason": PLAN_APPROVED}


def _tell(event: str, *words: str) -> HookOutput:
    context = "\n\n".join(filter(None, words))
    if not context:
        return {}
    return {
        "hookSpecificOutput": {"hookEventName": event, "additionalContext": context}
    }


def _decision(decision: str, reason: str) -> HookOutput:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }
    }
