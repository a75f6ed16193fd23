"""The script language: what a prompt's `demo:` lines ask the model to do.

Pure text in, steps out. One step answers one API call: a `Reply` is a message made of
pieces in order, a `Refusal` an HTTP error. Lines that don't start with `demo:` are
ignored. The language is described in docs/howto/demo-model.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

CWD = "$CWD"  # in tool inputs: the folder that the CLI names as its own
PLAN = "$PLAN"  # in tool inputs: the plan file that plan mode asks for

MAX_WORDS = 100_000
MAX_TEXT = 8 * 1024 * 1024


FaultKind: TypeAlias = Literal["cut", "early", "stall", "inband"]


class ScriptError(ValueError):
    """A `demo:` line that can't be understood; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Say:
    """Text sent word by word; continues the open text block after a blank."""

    text: str


@dataclass(frozen=True, slots=True)
class Exact:
    """Text sent to the letter, lone surrogates included."""

    text: str


@dataclass(frozen=True, slots=True)
class Words:
    """Numbered words (`amber-1 birch-2 ...`), or send times when `stamped`."""

    count: int
    per_second: float | None = None
    stamped: bool = False


@dataclass(frozen=True, slots=True)
class Think:
    text: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Send nothing more until the gate is released."""

    gate: str


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; a `str` input is sent as it is, to provoke broken JSON."""

    tool: str
    input: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class Fault:
    """The stream goes wrong here.

    cut: the connection drops; early: it ends without the message's end; stall:
    silence; inband: an error event.
    """

    kind: FaultKind
    times: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts to report; None means "estimate it"."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None


Piece: TypeAlias = Say | Exact | Words | Think | Hold | Call | Fault


@dataclass(frozen=True, slots=True)
class Reply:
    """One assistant message.

    `narrated` replies begin with a remark about the results that came before;
    `after_success` ones are only sent when those results held no error.
    """

    pieces: tuple[Piece, ...]
    usage: Usage | None = None
    stop_reason: str | None = None
    narrated: bool = False
    after_success: bool = False

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, Call))


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP error instead of a message; status 0 drops the connection."""

    status: int
    message: str | None = None
    retry_after: int | None = None
    times: int | None = None


Step: TypeAlias = Reply | Refusal


def default_question() -> dict[str, Any]:
    return {
        "questions": [
            {
                "question": "Which colour should it have?",
                "header": "Colour",
                "multiSelect": False,
                "options": [
                    {"label": "Green", "description": "Calm and easy to read"},
                    {"label": "Blue", "description": "Cool and formal"},
                    {"label": "Red", "description": "Loud, for warnings"},
                ],
            }
        ]
    }


def agent_call(prompt: str) -> Call:
    description = " ".join(prompt.split()[:5]) or "demo task"
    return Call(
        "Agent",
        {
            "description": description,
            "prompt": prompt,
            "subagent_type": "general-purpose",
        },
    )


def only_plans(tools: Collection[str]) -> bool:
    """Whether a session with these tools is in plan mode from its start.

    The CLI doesn't say so with every prompt.
    """
    return "ExitPlanMode" in tools and "EnterPlanMode" not in tools


def plan_steps(plan: str, *, narrated: bool = False) -> tuple[Reply, ...]:
    """Enter plan mode, write the plan file, hand the plan in."""
    written = Call("Write", {"file_path": PLAN, "content": plan})
    return (
        Reply((Call("EnterPlanMode", {}),), narrated=narrated),
        Reply((written,), after_success=True),
        Reply((Call("ExitPlanMode", {}),), after_success=True),
    )


@dataclass(slots=True)
class _Draft:
    """The steps read so far and the message being put together."""

    steps: list[Step] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    usage: Usage | None = None
    stop_reason: str | None = None
    in_parallel: bool = False

    def add(self, *pieces: Piece) -> None:
        self.pieces.extend(pieces)

    def add_call(self, call: Call) -> None:
        self.add(call)
        if not self.in_parallel:
            self.finish()

    def add_steps(self, *steps: Step) -> None:
        self.finish()
        self.steps.extend(steps)

    def finish(self) -> None:
        if self.pieces:
            self.steps.append(Reply(tuple(self.pieces), self.usage, self.stop_reason))
            self.pieces, self.usage, self.stop_reason = [], None, None


class _Argument:
    """What stands after a directive's name: words, or JSON over several lines."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start
        newline = text.find("\n", start)
        self.end = len(text) if newline < 0 else newline
        self.line = text[start : self.end].strip()

    def json(self) -> Any:
        """Read one JSON value; sets `line` to the rest of its last line."""
        gap = re.compile(r"[ \t]*").match(self._text, self._start)
        assert gap is not None
        try:
            value, end = json.JSONDecoder().raw_decode(self._text, gap.end())
        except json.JSONDecodeError as error:
            raise ScriptError(f"this is not JSON ({error.msg}): {self.line}") from error
        rest = _Argument(self._text, end)
        self.line, self.end = rest.line, rest.end
        return value

    def word(self) -> str:
        """Take the first word off the line."""
        found = re.compile(r"[ \t]*(\S+)").match(self._text, self._start, self.end)
        if found is None:
            raise ScriptError("a word is missing")
        self._start = found.end()
        self.line = self._text[self._start : self.end].strip()
        return found[1]

    def match(self, pattern: str, usage: str) -> re.Match[str]:
        found = re.fullmatch(pattern, self.line, re.IGNORECASE)
        if found is None:
            raise ScriptError(f"expected `{usage}`, not `{self.line}`")
        return found


_TIMES = r"(?: ?times (?P<times>\d+))?"


def _int(value: str | None) -> int | None:
    return None if value is None else int(value)


def _word_count(value: str) -> int:
    count = int(value)
    if count > MAX_WORDS:
        raise ScriptError(f"at most {MAX_WORDS} words")
    return count


def _say(draft: _Draft, argument: _Argument) -> None:
    draft.add(Say(argument.line))


def _text(draft: _Draft, argument: _Argument) -> None:
    text = argument.json()
    if not isinstance(text, str):
        raise ScriptError("`text` takes a JSON string")
    repeat = argument.match(_TIMES, "text JSON times N")
    times = _int(repeat["times"]) or 1
    if len(text) * times > MAX_TEXT:
        raise ScriptError(f"at most {MAX_TEXT} characters")
    draft.add(Exact(text * times))


def _stream(draft: _Draft, argument: _Argument) -> None:
    found = argument.match(
        r"(\d+) words?(?: at (\d+(?:\.\d+)?)/s)?( stamped)?",
        "stream N words at R/s",
    )
    rate = float(found[2]) if found[2] else None
    draft.add(Words(_word_count(found[1]), rate or None, stamped=bool(found[3])))


def _think(draft: _Draft, argument: _Argument) -> None:
    draft.add(Think(argument.line))


def _hold(draft: _Draft, argument: _Argument) -> None:
    found = argument.match(r"(\S+)(?: after (\d+) words?)?", "hold NAME after N words")
    if found[2] is None:
        draft.add(Hold(found[1]))
        return
    half = Words(_word_count(found[2]))
    draft.add(half, Hold(found[1]), half)


def _fault(kind: FaultKind) -> _Reader:
    def read(draft: _Draft, argument: _Argument) -> None:
        found = argument.match(
            rf"(?:after (\d+) words?)?{_TIMES}", f"{kind} after N words times N"
        )
        if found[1]:
            draft.add(Words(_word_count(found[1])))
        draft.add(Fault(kind, _int(found["times"])))

    return read


def _tool(draft: _Draft, argument: _Argument) -> None:
    tool = argument.word()
    tool_input = argument.json() if argument.line else {}
    if not isinstance(tool_input, dict):
        raise ScriptError("a tool's input is a JSON object")
    draft.add_call(Call(tool, tool_input))


def _broken_tool(draft: _Draft, argument: _Argument) -> None:
    tool = argument.word()
    draft.add_call(Call(tool, argument.line))


def _parallel(draft: _Draft, argument: _Argument) -> None:
    draft.in_parallel = True


def _end(draft: _Draft, argument: _Argument) -> None:
    draft.in_parallel = False
    draft.finish()


def _agent(draft: _Draft, argument: _Argument) -> None:
    prompt = argument.json() if argument.line.startswith('"') else argument.line
    draft.add_call(agent_call(str(prompt)))


def _ask(draft: _Draft, argument: _Argument) -> None:
    question = argument.json() if argument.line else default_question()
    if not isinstance(question, dict):
        raise ScriptError("`ask` takes the input of AskUserQuestion, a JSON object")
    draft.add_call(Call("AskUserQuestion", question))


def _plan(draft: _Draft, argument: _Argument) -> None:
    plan = argument.json() if argument.line.startswith('"') else argument.line
    draft.add_steps(*plan_steps(str(plan)))


def _error(draft: _Draft, argument: _Argument) -> None:
    found = argument.match(
        rf"(\d{{3}}|dropped)(?: retry-after (\d+))?{_TIMES}(?: message (.+))?",
        "error STATUS retry-after S times N message TEXT",
    )
    status = 0 if found[1].lower() == "dropped" else int(found[1])
    if status and not 400 <= status <= 599:
        raise ScriptError(f"{status} is not an error")
    draft.add_steps(
        Refusal(status, found[4], _int(found[2]), _int(found["times"])),
    )


def _usage(draft: _Draft, argument: _Argument) -> None:
    pairs = argument.match(
        r"(?:(?:input|output|cache_read|cache_write) \d+ ?)+",
        "usage input N output N cache_read N cache_write N",
    )[0].split()
    numbers = dict(zip(pairs[::2], map(int, pairs[1::2]), strict=True))
    draft.usage = replace(draft.usage or Usage(), **numbers)


def _stop(draft: _Draft, argument: _Argument) -> None:
    draft.stop_reason = argument.word()


def _summary(draft: _Draft, argument: _Argument) -> None:
    """Kept for the request that asks for a summary; see `summary_script`."""


_Reader: TypeAlias = Callable[[_Draft, _Argument], None]

_READERS: dict[str, _Reader] = {
    "say": _say,
    "text": _text,
    "stream": _stream,
    "think": _think,
    "hold": _hold,
    "cut": _fault("cut"),
    "early": _fault("early"),
    "stall": _fault("stall"),
    "inband": _fault("inband"),
    "tool": _tool,
    "broken-tool": _broken_tool,
    "parallel": _parallel,
    "end": _end,
    "agent": _agent,
    "ask": _ask,
    "plan": _plan,
    "error": _error,
    "usage": _usage,
    "stop": _stop,
    "summary": _summary,
}

_DIRECTIVE = re.compile(r"^[ \t]*demo:[ \t]*([a-z-]*)", re.IGNORECASE | re.MULTILINE)


def parse_script(text: str) -> tuple[Step, ...] | None:
    """Read the `demo:` lines of a prompt.

    Returns: the steps, or None if the prompt holds no such line.
    Raises: ScriptError: a line can't be understood.
    """
    draft = _Draft()
    found = _DIRECTIVE.search(text)
    if found is None:
        return None
    while found is not None:
        name = found[1].lower()
        if name not in _READERS:
            raise ScriptError(f"there is no directive `{name}`")
        argument = _Argument(text, found.end())
        _READERS[name](draft, argument)
        found = _DIRECTIVE.search(text, argument.end)
    if draft.in_parallel:
        raise ScriptError("`parallel` without `end`")
    _close(draft)
    return tuple(draft.steps)


_SUMMARY = re.compile(r"^[ \t]*demo:[ \t]*summary[ \t]+", re.IGNORECASE | re.MULTILINE)


def summary_script(text: str) -> tuple[Step, ...]:
    """What the `demo: summary ...` lines of a conversation ask for, if any do.

    Raises: ScriptError: a line can't be understood.
    """
    lines = [_Argument(text, found.end()).line for found in _SUMMARY.finditer(text)]
    return parse_script("\n".join(f"demo: {line}" for line in lines)) or ()


def _close(draft: _Draft) -> None:
    """Finish the last message; numbers without any text get a short text."""
    if not draft.pieces and (draft.usage or draft.stop_reason):
        draft.add(Say("Done."))
    draft.finish()
