"""The messages of a request, read back as prompts and what was answered to each.

The CLI adds texts of its own to a conversation (reminders, notes about interruptions);
they are told apart from what the person typed here, and only here.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_INTERRUPTED = (
    "[Request interrupted",
    "[Tool call did not complete",
    "[Tool call interrupted",
    "[Tool use interrupted",
)
_FILLER = "No response requested."  # put by the CLI where an answer was lost
_CUT = re.compile(
    r"\A(?:<system-reminder>\s*)?(?:Your response above was cut off"
    r"|Output token limit hit|Your response was cut off because)"
)
_NOTES = (
    "Continue from where you left off.",
    "[Image: source:",
    "[structured-output-enforce]",
)
_REPORT = re.compile(r"The report follows:\n(.*?)\nagentId:", re.DOTALL)
# A prompt that was never stored is sent again before the one that resumes it.
_JOINT = re.compile(r"\n\n(?=The server was restarted while you waited)")
_CWD = re.compile(r"(?:Primary w|W)orking directory: (\S[^\n]*)")
_PLAN_FILE = re.compile(
    r"(?:plan at|plan file already exists at|plan file:?) (/\S+\.md)"
)


@dataclass(slots=True)
class Result:
    text: str
    is_error: bool


@dataclass(slots=True)
class Answer:
    """One assistant message and the results of its tool calls."""

    calls: dict[str, str]  # id -> tool name
    results: dict[str, Result] = field(default_factory=dict)
    was_interrupted: bool = False
    was_cut: bool = False  # the CLI kept the part that came and asked for the rest

    @property
    def is_finished(self) -> bool:
        return not self.was_interrupted and self.has_all_results

    @property
    def has_all_results(self) -> bool:
        return self.calls.keys() <= self.results.keys()

    @property
    def has_error(self) -> bool:
        return any(result.is_error for result in self.results.values())


@dataclass(slots=True)
class Exchange:
    """A prompt, the CLI's notes before the first answer, and the answers so far."""

    prompt: str
    notes: list[str] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)


@dataclass(slots=True)
class Conversation:
    exchanges: list[Exchange]
    cwd: str | None
    plan_file: str | None


def plain_text(content: object) -> str:
    """The text of a content value, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text", "") for block in blocks if isinstance(block, dict))
    return "\n".join(text for text in texts if text)


def read_conversation(body: dict[str, Any]) -> Conversation:
    exchanges: list[Exchange] = [Exchange("")]
    notes = [plain_text(body.get("system"))]
    for message in body.get("messages") or []:
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            if plain_text(content) != _FILLER:
                exchanges[-1].answers.append(_answer(content))
        elif role == "system":
            notes.append(plain_text(content))
            _note(notes[-1], exchanges[-1])
        else:
            notes.extend(_REMINDER.findall(plain_text(content)))
            for block in _blocks(content):
                _read_user_block(block, exchanges)
    everything = "\n".join(notes)
    return Conversation(
        exchanges=exchanges[1:] or exchanges,
        cwd=_first(_CWD, everything),
        plan_file=_last(_PLAN_FILE, everything),
    )


def is_in_plan_mode(exchange: Exchange) -> bool:
    """Whether the prompt came in plan mode."""
    return any("Plan mode is active" in note for note in exchange.notes)


def _blocks(content: object) -> Iterator[dict[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict))


def _answer(content: object) -> Answer:
    calls = {
        block["id"]: block["name"]
        for block in _blocks(content)
        if block.get("type") == "tool_use"
    }
    return Answer(calls)


def _read_user_block(block: dict[str, Any], exchanges: list[Exchange]) -> None:
    if block.get("type") == "tool_result":
        _attach(block, exchanges)
    elif block.get("type") == "text":
        _read_text(block.get("text", ""), exchanges)


def _attach(block: dict[str, Any], exchanges: list[Exchange]) -> None:
    call_id = block.get("tool_use_id", "")
    text = plain_text(block.get("content"))
    for exchange in reversed(exchanges):
        for answer in reversed(exchange.answers):
            if call_id in answer.calls:
                if text.startswith(_INTERRUPTED):
                    answer.was_interrupted = True
                is_error = bool(block.get("is_error"))
                answer.results[call_id] = Result(_report(text), is_error)
                return


def _report(text: str) -> str:
    """A sub-agent's own words, without the frame that the CLI puts around them."""
    found = _REPORT.search(text)
    return textwrap.dedent(found[1]) if found else text


def _note(text: str, exchange: Exchange) -> None:
    if not exchange.answers:
        exchange.notes.append(text)


def _read_text(text: str, exchanges: list[Exchange]) -> None:
    bare = _REMINDER.sub("", text)
    if bare != text:
        _note(text, exchanges[-1])
        bare = bare.strip()
    last = exchanges[-1].answers[-1] if exchanges[-1].answers else None
    if last is not None and _CUT.search(text):
        last.was_cut = True
    elif last is not None and bare.startswith(_INTERRUPTED):
        last.was_interrupted |= not _is_of_next(bare, last)
    elif bare and not bare.startswith((*_NOTES, *_INTERRUPTED)):
        exchanges.extend(Exchange(prompt) for prompt in _JOINT.split(bare))


def _is_of_next(interruption: str, last: Answer) -> bool:
    """Whether what broke off is the answer to the results of `last`."""
    is_of_model = interruption.startswith("[Request interrupted by user]")
    return is_of_model and bool(last.calls) and last.has_all_results


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1].strip() if found else None


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.findall(text)
    return str(found[-1]) if found else None
