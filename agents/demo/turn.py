"""What the demo model answers next: a function of the request alone.

The prompt is read as a script, and as many of its steps are taken as done as there
are answers to it in the conversation; so a restarted process, a resumed session and a
fork all go on at the right place. Only failures, which leave no trace in a
conversation, are counted outside (`failures_of`).
"""

from __future__ import annotations

import hashlib
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
from agents.demo.resuming import is_resuming, resumed, split_broken
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
    only_plans,
    parse_script,
)
from agents.demo.sentences import Context, steps_of

QUOTE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Move:
    """The step to play now; `failure_key` names it for the failure counter."""

    step: Step
    failure_key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Position:
    """The steps that the last message asks for, and the answers it got so far."""

    prompt: str
    steps: tuple[Step, ...]
    answers: list[Answer]

    @property
    def last(self) -> Answer | None:
        return self.answers[-1] if self.answers else None


def next_move(
    body: dict[str, Any],
    *,
    caller: tuple[str, ...],
    failures_of: Callable[[tuple[str, ...]], int],
) -> Move:
    """Decide the answer to a request of a conversation (not a side request)."""
    talk = read_conversation(body)
    position = _locate(talk, _tools(body))
    steps = position.steps
    prompt = position.prompt.encode("utf-8", "surrogatepass")
    prompt_id = hashlib.sha256(prompt).hexdigest()

    def key(index: int) -> tuple[str, ...]:
        # Counted from the end, which stays put when "continue" drops what is done.
        return (*caller, prompt_id, str(len(steps) - index))

    index = _current(steps, len(position.answers), lambda at: failures_of(key(at)))
    step = steps[index] if index < len(steps) else _closing(position.last)
    step = _prepare(step, position.last, talk)
    if isinstance(step, Reply):
        step = _without_spent_faults(step, failures_of(key(index)))
    return Move(step, key(index))


def _tools(body: dict[str, Any]) -> frozenset[str]:
    return frozenset(tool.get("name", "") for tool in body.get("tools") or [])


def _locate(talk: Conversation, tools: frozenset[str]) -> _Position:
    """Find what is to be done now: "continue" goes on with an earlier prompt."""
    exchanges = talk.exchanges
    start = len(exchanges) - 1
    while start > 0 and is_resuming(exchanges[start].prompt):
        start -= 1
    earlier = tuple(exchange.prompt for exchange in exchanges[:start])
    steps = _read_steps(exchanges[start], Context(tools=tools, earlier=earlier))
    for exchange in exchanges[start:]:
        if exchange is not exchanges[start]:
            steps = resumed(steps, exchange.prompt)
        answers = [answer for answer in exchange.answers if answer.is_finished]
        steps = _unfold(steps, answers)
        if exchange is not exchanges[-1]:
            steps = _after(steps, len(answers))
    return _Position(exchanges[start].prompt, steps, answers)


def _read_steps(exchange: Exchange, context: Context) -> tuple[Step, ...]:
    if exchange.prompt.startswith("<task-notification>"):
        return (Reply((Say("The work in the background has ended."),)),)
    try:
        steps = parse_script(exchange.prompt)
    except ScriptError as error:
        return (Reply((Say(f"This script can't be played: {error}."),)),)
    if steps is None:
        steps = steps_of(exchange.prompt, context)
    if is_in_plan_mode(exchange) or only_plans(context.tools):
        steps = tuple(step for step in steps if not _enters_plan_mode(step))
    return steps


def _after(steps: tuple[Step, ...], replies: int) -> tuple[Step, ...]:
    """What is left when so many replies have been sent."""
    for index, step in enumerate(steps):
        if replies == 0:
            return steps[index:]
        replies -= isinstance(step, Reply)
    return ()


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
                step, tail = split_broken(step)
                rest.insert(0, tail)
        unfolded.append(step)
    return tuple(unfolded)


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


def _prepare(step: Step, last: Answer | None, talk: Conversation) -> Step:
    if isinstance(step, Refusal):
        return step
    if step.after_success and last is not None and last.has_error:
        step = _closing(last)
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


def _closing(last: Answer | None) -> Reply:
    """The last words of a turn: what the tools answered, or that all is said."""
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
