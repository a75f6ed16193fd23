"""What the demo model answers next: a function of the request alone.

The prompt is read as a script, and as many of its steps are taken as done as there
are answers to it in the conversation; so a restarted process, a resumed session and a
fork all go on at the right place. Only failures, which leave no trace in a
conversation, are counted outside (`failures_of`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from agents.demo.conversation import (
    Answer,
    Conversation,
    Exchange,
    is_in_plan_mode,
    read_conversation,
)
from agents.demo.script import (
    CWD,
    PLAN,
    Call,
    Fault,
    Refusal,
    Reply,
    Say,
    ScriptError,
    Step,
    parse_script,
)
from agents.demo.sentences import Context, steps_of

_CONTINUE = re.compile(
    r"(?:please )?(?:continue|carry on|go on|resume)\b", re.IGNORECASE
)
_REFUSED = re.compile(r"\b(?:denied|refused|declined|rejected)\b", re.IGNORECASE)
QUOTE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Move:
    """The step to play now; `failure_key` names it for the failure counter."""

    step: Step
    failure_key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Position:
    """The prompt in force and how much of it is answered."""

    exchange: Exchange
    answers: list[Answer]
    earlier: tuple[str, ...]
    refused: str | None = None


def next_move(
    body: dict[str, Any],
    *,
    caller: tuple[str, ...],
    failures_of: Callable[[tuple[str, ...]], int],
) -> Move:
    """Decide the answer to a request of a conversation (not a side request)."""
    talk = read_conversation(body)
    position = _locate(talk)
    steps = _steps(position, body)
    prompt_id = hashlib.sha256(
        position.exchange.prompt.encode("utf-8", "surrogatepass")
    ).hexdigest()

    def key(index: int) -> tuple[str, ...]:
        return (*caller, prompt_id, str(index))

    steps = _unfold(steps, position.answers)
    index = _current(steps, len(position.answers), lambda at: failures_of(key(at)))
    step = steps[index] if index < len(steps) else _closing(position)
    step = _prepare(step, position, talk)
    if isinstance(step, Reply):
        step = _without_spent_faults(step, failures_of(key(index)))
    return Move(step, key(index))


def _locate(talk: Conversation) -> _Position:
    """Find the prompt in force: "continue" goes on with an earlier one."""
    exchanges = talk.exchanges
    start = len(exchanges) - 1
    while start > 0 and _CONTINUE.match(exchanges[start].prompt):
        start -= 1
    before = [a for e in exchanges[start:-1] for a in e.answers]
    finished = [answer for answer in before if answer.is_finished]
    current = exchanges[-1]
    refused = None
    if start < len(exchanges) - 1 and _REFUSED.search(current.prompt):
        refused = current.prompt
        if not (finished and finished[-1].has_error):
            finished.append(Answer({}))  # the refused call is not made again
    finished += [answer for answer in current.answers if answer.is_finished]
    return _Position(
        exchange=exchanges[start],
        answers=finished,
        earlier=tuple(exchange.prompt for exchange in exchanges[:-1]),
        refused=refused,
    )


def _steps(position: _Position, body: dict[str, Any]) -> tuple[Step, ...]:
    prompt = position.exchange.prompt
    if prompt.startswith("<task-notification>"):
        return (Reply((Say("The work in the background has ended."),)),)
    try:
        steps = parse_script(prompt)
    except ScriptError as error:
        return (Reply((Say(f"This script can't be played: {error}."),)),)
    if steps is None:
        tools = frozenset(tool.get("name", "") for tool in body.get("tools") or [])
        steps = steps_of(prompt, Context(tools=tools, earlier=position.earlier))
    if is_in_plan_mode(position.exchange):
        steps = tuple(step for step in steps if not _enters_plan_mode(step))
    return steps


def _enters_plan_mode(step: Step) -> bool:
    return isinstance(step, Reply) and [c.tool for c in step.calls] == ["EnterPlanMode"]


def _unfold(steps: tuple[Step, ...], answers: list[Answer]) -> tuple[Step, ...]:
    """Split the replies that broke off: what stands after the break is still owed."""
    rest, unfolded, replies = list(steps), list[Step](), 0
    while rest:
        step = rest.pop(0)
        if isinstance(step, Reply):
            was_cut = replies < len(answers) and answers[replies].was_cut
            replies += 1
            if was_cut:
                step, tail = _split_at_fault(step)
                rest.insert(0, tail)
        unfolded.append(step)
    return tuple(unfolded)


def _split_at_fault(reply: Reply) -> tuple[Reply, Reply]:
    faults = [n for n, p in enumerate(reply.pieces, 1) if isinstance(p, Fault)]
    at = faults[0] if faults else len(reply.pieces)
    tail = reply.pieces[at:] or (Say("That is the rest."),)
    return replace(reply, pieces=reply.pieces[:at]), replace(
        reply, pieces=tail, stop_reason=None
    )


def _current(
    steps: tuple[Step, ...], answered: int, failures_of: Callable[[int], int]
) -> int:
    """The index of the step to play; past the end when all are done."""
    replies = 0
    for index, step in enumerate(steps):
        if isinstance(step, Reply):
            replies += 1
            if replies > answered:
                return index
        elif replies >= answered and (
            step.times is None or failures_of(index) < step.times
        ):
            return index
    return len(steps)


def _prepare(step: Step, position: _Position, talk: Conversation) -> Step:
    if isinstance(step, Refusal):
        return step
    last = position.answers[-1] if position.answers else None
    if step.after_success and last is not None and last.has_error:
        step = _closing(position)
    if PLAN in repr(step.calls) and talk.plan_file is None:
        return Reply((Say("No plan file was named to me, so I can't write a plan."),))
    if step.narrated and last is not None and last.results:
        step = replace(step, pieces=(Say(_remark(last) + "\n\n"), *step.pieces))
    pieces = tuple(
        replace(piece, input=_fill(piece.input, talk))
        if isinstance(piece, Call)
        else piece
        for piece in step.pieces
    )
    return replace(step, pieces=pieces)


def _fill(value: Any, talk: Conversation) -> Any:
    """Put the real paths in place of `$CWD` and `$PLAN`."""
    if isinstance(value, str):
        if talk.cwd is None:
            value = value.replace(f"{CWD}/", "")
        return value.replace(CWD, talk.cwd or ".").replace(PLAN, talk.plan_file or "")
    if isinstance(value, list):
        return [_fill(item, talk) for item in value]
    if isinstance(value, dict):
        return {key: _fill(item, talk) for key, item in value.items()}
    return value


def _without_spent_faults(reply: Reply, failures: int) -> Reply:
    pieces = tuple(
        piece
        for piece in reply.pieces
        if not isinstance(piece, Fault) or piece.times is None or failures < piece.times
    )
    return replace(reply, pieces=pieces)


def _closing(position: _Position) -> Reply:
    """The last words of a turn: what the tools answered, or that all is said."""
    if position.refused is not None:
        return Reply(
            (Say(f"I will leave it. You told me: {_quote(position.refused)}"),)
        )
    last = position.answers[-1] if position.answers else None
    if last is None or not last.results:
        return Reply((Say("That is all; there is nothing left to do."),))
    return Reply((Say(_remark(last)),))


def _remark(answer: Answer) -> str:
    return "\n\n".join(
        f"That did not work. {name} answered: {_quote(result.text)}"
        if result.is_error
        else f"Done. {name} answered: {_quote(result.text)}"
        for call_id, name in answer.calls.items()
        if (result := answer.results.get(call_id)) is not None
    )


def _quote(text: str) -> str:
    text = text.strip()
    return text if len(text) <= QUOTE_LENGTH else f"{text[:QUOTE_LENGTH]}…"
