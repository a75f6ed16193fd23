"""Plain sentences that the demo model understands, turned into steps.

Several are joined with "then"; words in double quotes or backticks are never split.
Paths are written relative to the folder that the CLI named.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from agents.demo.script import (
    CWD,
    Call,
    Reply,
    Say,
    Step,
    Think,
    agent_call,
    default_question,
    only_plans,
    plan_steps,
)

HELLO = """\
Hello! I am the **demo model**: my replies are scripted, no real model is behind them. \
Everything around me is real, so you can try it all without a key. For example:

- `write the file notes.txt with the text Hello` – asks before it writes
- `read notes.txt` – shows a file; `read a.txt and b.txt` reads both at once
- `edit notes.txt replace Hello with Goodbye` – shows a diff
- `run ls -l` – runs a command
- `ask me a question` – shows a form to answer
- `think about the sea` – shows thinking
- `count to 50` – streams, so that you can watch it or press Stop
- `start a sub-agent to run date` – delegates to another agent
- `plan a picnic` – enters plan mode and hands in a plan
- `make a todo list: buy tea, boil water, pour` – keeps a checklist
- `what did I say before?` – lists your earlier messages

Join several with **then**: `write the file a.txt with the text hi then run cat a.txt`.
"""

EXAMPLES = (
    "hello",
    "write the file notes.txt with the text Hello then run cat notes.txt",
    "ask me a question",
    "think about the sea then count to 100",
    "start a sub-agent to run date",
    "plan a picnic",
    "make a todo list: buy tea, boil water, pour",
)
"""Prompts worth a button on an empty page."""

MAX_COUNT = 10_000


@dataclass(frozen=True, slots=True)
class Context:
    """What a sentence may refer to: the offered tools and the talk so far."""

    tools: frozenset[str] = frozenset()
    earlier: tuple[str, ...] = ()


_NAME = r"(?:\"([^\"]+)\"|`([^`]+)`|(\S+))"


def _unquote(text: str) -> str:
    text = text.strip()
    for left, right in (('"', '"'), ("`", "`"), ("“", "”")):
        if len(text) > 1 and text[0] == left and text[-1] == right:
            return text[1:-1]
    return text


def _path(name: str) -> str:
    name = _unquote(name)
    return name if name.startswith(("/", "~")) else f"{CWD}/{name.removeprefix('./')}"


def _use(words: str, *calls: Call, after_success: bool = False) -> Reply:
    return Reply((Say(words), *calls), narrated=True, after_success=after_success)


def _write(found: re.Match[str], context: Context) -> list[Step]:
    name, text = _unquote(found["name"]), _unquote(found["text"])
    call = Call("Write", {"file_path": _path(name), "content": text})
    return [_use(f"I will write `{name}`.", call)]


def _run(found: re.Match[str], context: Context) -> list[Step]:
    command = _unquote(found["command"])
    call = Call("Bash", {"command": command, "description": "Run a command"})
    return [_use(f"I will run `{command}`.", call)]


def _read(found: re.Match[str], context: Context) -> list[Step]:
    names = [_unquote(name) for name in re.split(r",\s*|\s+and\s+", found["names"])]
    calls = [Call("Read", {"file_path": _path(name)}) for name in names]
    return [_use(f"I will read {' and '.join(f'`{n}`' for n in names)}.", *calls)]


def _edit(found: re.Match[str], context: Context) -> list[Step]:
    name = _unquote(found["name"])
    change = {
        "file_path": _path(name),
        "old_string": _unquote(found["old"]),
        "new_string": _unquote(found["new"]),
    }
    # The CLI refuses to edit a file that was not read in this conversation.
    read = _use(
        f"I will read `{name}` first.", Call("Read", {"file_path": _path(name)})
    )
    edit = _use(f"Now I will edit `{name}`.", Call("Edit", change), after_success=True)
    return [read, edit]


def _find(found: re.Match[str], context: Context) -> list[Step]:
    pattern = _unquote(found["pattern"] or "**/*")
    return [_use(f"I will look for `{pattern}`.", Call("Glob", {"pattern": pattern}))]


def _search(found: re.Match[str], context: Context) -> list[Step]:
    pattern = _unquote(found["pattern"])
    call = Call("Grep", {"pattern": pattern, "output_mode": "content"})
    return [_use(f"I will search for `{pattern}`.", call)]


def _ask(found: re.Match[str], context: Context) -> list[Step]:
    return [
        _use("I need to know something.", Call("AskUserQuestion", default_question()))
    ]


def _think(found: re.Match[str], context: Context) -> list[Step]:
    topic = found["topic"].rstrip(".!")
    thought = (
        f"The person wants me to think about {topic}. What is known about {topic}? "
        "Not much, since I am scripted. A short and honest answer is best."
    )
    answer = Say(f"I have thought about {topic}, and it is worth a closer look.")
    return [Reply((Think(thought), answer), narrated=True)]


def _count(found: re.Match[str], context: Context) -> list[Step]:
    limit = min(int(found["limit"]), MAX_COUNT)
    numbers = " ".join(str(number) for number in range(1, limit + 1))
    return [Reply((Say(numbers),), narrated=True)]


def _agent(found: re.Match[str], context: Context) -> list[Step]:
    return [_use("I will start a sub-agent.", agent_call(_unquote(found["task"])))]


def _plan(found: re.Match[str], context: Context) -> list[Step]:
    topic = found["topic"].rstrip(".!")
    plan = (
        f"# Plan: {topic}\n\n1. Look at what is there.\n2. Do it in small steps.\n"
        "3. Check the result.\n"
    )
    steps: list[Step] = list(plan_steps(plan, narrated=True))
    return steps[1:] if only_plans(context.tools) else steps


def _carry_out(found: re.Match[str], context: Context) -> list[Step]:
    words = "This is where a real model would carry the plan out."
    return [Reply((Say(words),), narrated=True)]


def _todo(found: re.Match[str], context: Context) -> list[Step]:
    items = re.split(r"\s*(?:[,;\n]|\band\b)\s*(?:and\s+)?", found["items"].rstrip("."))
    items = [item for item in items if item] or ["start"]
    words = "I will keep a todo list."
    if "TodoWrite" not in context.tools and "TaskCreate" in context.tools:
        return [_use(words, *(Call("TaskCreate", _task(item)) for item in items))]
    states = ["completed", "in_progress"] + ["pending"] * len(items)
    todos = [
        {"content": item, "status": state, "activeForm": f"Doing: {item}"}
        for item, state in zip(items, states, strict=False)
    ]
    return [_use(words, Call("TodoWrite", {"todos": todos}))]


def _task(item: str) -> dict[str, Any]:
    return {"subject": item, "description": item, "activeForm": f"Doing: {item}"}


def _say(found: re.Match[str], context: Context) -> list[Step]:
    return [Reply((Say(_unquote(found["text"])),), narrated=True)]


def _hello(found: re.Match[str], context: Context) -> list[Step]:
    return [Reply((Say(HELLO),))]


def _memory(found: re.Match[str], context: Context) -> list[Step]:
    count = len(context.earlier)
    if not count:
        return [Reply((Say("This is the first message that you sent me."),))]
    heading = "1 message" if count == 1 else f"{count} messages"
    listed = "\n".join(
        f"{number}. {text}" for number, text in enumerate(context.earlier, 1)
    )
    return [Reply((Say(f"Before this you sent me {heading}:\n\n{listed}"),))]


_Maker: TypeAlias = Callable[[re.Match[str], Context], list[Step]]


def _sentence(pattern: str, maker: _Maker) -> tuple[re.Pattern[str], _Maker]:
    polite = rf"(?:please |can you |could you |now )*{pattern}"
    return re.compile(polite, re.IGNORECASE | re.DOTALL), maker


_FILE = r"(?:the |a )?(?:file )?(?:called |named )?"
_ONE = r"(?:\"[^\"]+\"|`[^`]+`|\S+?)"

_SENTENCES = (
    _sentence(
        rf"(?:write|create|make) (?:the |a |me a )?file (?:called |named )?"
        rf"(?P<name>{_ONE}) (?:with|containing|saying)(?: the)?"
        r"(?: text| contents?| words?)?:? ?(?P<text>.*)",
        _write,
    ),
    _sentence(r"(?:run|execute)(?: the command)?:? (?P<command>.+)", _run),
    _sentence(
        rf"(?:edit|change) {_FILE}(?P<name>{_ONE})[,:]?(?: and)? "
        r"replac(?:e|ing) (?P<old>.+?) (?:with|by) (?P<new>.*)",
        _edit,
    ),
    _sentence(
        rf"(?:read|show|open) (?:me )?(?:the )?(?:files? )?"
        rf"(?P<names>{_ONE}(?:(?:,\s*|\s+and\s+){_ONE})*)[.!]?",
        _read,
    ),
    _sentence(
        r"(?:list|show)(?: me)?(?: all)?(?: the)? files(?P<pattern>)[.!]?", _find
    ),
    _sentence(r"find(?: the)? files? (?P<pattern>\S+)", _find),
    _sentence(r"(?:search|grep|look) for (?P<pattern>.+)", _search),
    _sentence(r"ask (?:me )?(?:a |some |an? \w+ )?questions?\b.*", _ask),
    _sentence(r"think (?:hard |carefully )?about (?P<topic>.+)", _think),
    _sentence(r"count (?:up )?to (?P<limit>\d{1,9})\b.*", _count),
    _sentence(
        r"(?:start|launch|use|spawn) (?:a|an|another|the) sub-?agent "
        r"(?:to |that |which |and (?:let it )?)(?P<task>.+)",
        _agent,
    ),
    _sentence(
        r"(?:make|create|write|keep) (?:a |the )?(?:to-?do|task) ?list"
        r"(?: for| of| with| about| to)?:? (?P<items>.+)",
        _todo,
    ),
    _sentence(
        r"(?:make a plan|plan)(?: how to| to| for|:)? (?P<topic>.+)",
        _plan,
    ),
    _sentence(r"the plan is approved\. carry it out now\.?", _carry_out),
    _sentence(
        r"(?:what did i (?:say|write|tell you)|what have i (?:said|written)"
        r"|list my (?:earlier )?messages|what do you remember)\b.*",
        _memory,
    ),
    _sentence(r"say:? (?P<text>.+)", _say),
    _sentence(
        r"(?:hello|hi|hey|help|good (?:morning|day)|what can you do)\b.*", _hello
    ),
)

_QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`|“[^”]*”")
_THEN = re.compile(r"[\s,.;]+(?:and )?then\s+", re.IGNORECASE)


def _split(text: str) -> list[str]:
    """Cut at each "then" that stands outside quotes."""
    masked = _QUOTED.sub(lambda found: "x" * len(found[0]), text)
    clauses, start = [], 0
    for joint in _THEN.finditer(masked):
        clauses.append(text[start : joint.start()])
        start = joint.end()
    return [*clauses, text[start:]]


def _understand(clause: str, context: Context) -> list[Step] | None:
    for pattern, maker in _SENTENCES:
        found = pattern.fullmatch(clause.strip())
        if found is not None:
            return maker(found, context)
    return None


def _unknown(clause: str) -> Reply:
    short = clause.strip()
    short = short if len(short) <= 200 else f"{short[:200]}…"
    words = (
        f"I don't know how to do this: {short}\n\nSay `hello` to see what can be tried."
    )
    return Reply((Say(words),), narrated=True)


def _missing(step: Step, tools: frozenset[str]) -> str | None:
    if isinstance(step, Reply):
        for call in step.calls:
            # `Agent` is offered under its older name by some versions.
            if call.tool not in tools and not (
                call.tool == "Agent" and "Task" in tools
            ):
                return call.tool
    return None


def _offered(steps: list[Step], tools: frozenset[str]) -> list[Step]:
    """End the steps at the first tool that is not offered, saying so."""
    for index, step in enumerate(steps):
        missing = _missing(step, tools)
        if missing is not None:
            words = f"I would use {missing} for this, but it is not offered to me here."
            return [*steps[:index], Reply((Say(words),), narrated=True)]
    return steps


def _merge(steps: list[Step]) -> list[Step]:
    """Put text-only replies in front of what follows: a text alone ends the turn."""
    merged: list[Step] = []
    for step in steps:
        last = merged[-1] if merged else None
        if isinstance(last, Reply) and isinstance(step, Reply) and not last.calls:
            pieces = (*last.pieces, *step.pieces)
            merged[-1] = Reply(pieces, narrated=True, after_success=last.after_success)
        else:
            merged.append(step)
    return merged


def steps_of(text: str, context: Context) -> tuple[Step, ...]:
    """Read a prompt without `demo:` lines; always at least one step."""
    steps = _understand_all(text, context)
    if steps is None:
        # A prompt may carry notes in front of what the person typed.
        steps = _understand_all(text.strip().rsplit("\n\n", 1)[-1], context)
    return tuple(_merge(_offered(steps or [_unknown(text)], context.tools)))


def _understand_all(text: str, context: Context) -> list[Step] | None:
    whole = _understand(text, context) if "then" not in text.lower() else None
    if whole is not None:
        return whole
    steps: list[Step] = []
    for index, clause in enumerate(_split(text)):
        understood = _understand(clause, context)
        if understood is None and index == 0:
            return None
        steps.extend(understood or [_unknown(clause)])
    return steps
