"""Going on with an earlier prompt: "continue", and decisions that came in late.

A tool call that was cut off (by Stop, by a crash) left no result, so its step is still
owed. The prompt that resumes such a session may state what a person decided about it:
`Approved ... call: NAME {input}` has that call made again, a denial leaves it out.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from agents.demo.script import Call, Fault, Reply, Say, Step

_RESUMING = re.compile(
    r"(?:please )?(?:continue|carry on|go on|resume)\b|the server was restarted\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:denied|refused|declined|rejected)\b", re.IGNORECASE)
_DECISION = re.compile(
    r"^(?P<verdict>approved|denied)\b(?P<words>.*?)^call: (?P<tool>\S+) ",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


def is_resuming(prompt: str) -> bool:
    return _RESUMING.match(prompt) is not None


def resumed(steps: tuple[Step, ...], prompt: str) -> tuple[Step, ...]:
    """The steps still owed, once the prompt's decisions are taken into account."""
    granted, denials = _decisions(prompt)
    if not granted and not denials:
        return steps
    at = next((n for n, s in enumerate(steps) if isinstance(s, Reply)), len(steps))
    rest = steps[at + 1 :]
    said = tuple(Say(f"I will leave it. You told me: {words}") for words in denials)
    if granted:
        return (*steps[:at], Reply((*said, *granted)), *rest)
    if rest and isinstance(rest[0], Reply):
        rest = (replace(rest[0], pieces=(*said, *rest[0].pieces)), *rest[1:])
        return (*steps[:at], *rest)
    return (*steps[:at], Reply(said), *rest)


def _decisions(prompt: str) -> tuple[list[Call], list[str]]:
    granted: list[Call] = []
    denials: list[str] = []
    for found in _DECISION.finditer(prompt):
        if found["verdict"].lower() == "denied":
            denials.append(found["words"].strip(" :\n"))
            continue
        tool_input, _ = json.JSONDecoder().raw_decode(prompt, found.end())
        granted.append(Call(found["tool"], tool_input))
    if not granted and not denials and _DENIED.search(prompt):
        denials.append(prompt)
    return granted, denials


def split_broken(reply: Reply) -> tuple[Reply, Reply]:
    """A reply that broke off, as what was sent and what is still owed."""
    faults = [n for n, p in enumerate(reply.pieces, 1) if isinstance(p, Fault)]
    at = faults[0] if faults else len(reply.pieces)
    tail = reply.pieces[at:] or (Say("That is the rest."),)
    return (
        replace(reply, pieces=reply.pieces[:at]),
        replace(reply, pieces=tail, stop_reason=None),
    )
