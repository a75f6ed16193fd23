"""What kind of failure a tool's error tells of, and what to try instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    RETRYABLE = "retryable"
    FIXABLE = "fixable"
    TERMINAL = "terminal"


@dataclass(frozen=True, slots=True)
class Advice:
    kind: FailureKind
    suggestion: str
    alternatives: tuple[str, ...] = ()


_WEB_TOOLS = {"fetch", "WebFetch", "WebSearch"}
_FORBIDDEN = re.compile(
    r"\b(?:401|403|EPERM|EACCES)\b|permission denied|unauthorized|forbidden"
    r"|operation not permitted|read-only file system",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"\b(?:404|ENOENT)\b|no such file|not found|does not exist|cannot find",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"time[d ]*out|ETIMEDOUT|ECONNRESET|ECONNREFUSED|connection re(?:set|fused)"
    r"|rate limit|\b(?:429|502|503|504)\b|service unavailable|network error"
    r"|socket hang up|temporarily",
    re.IGNORECASE,
)
_WRONG_INPUT = re.compile(
    r"validation|invalid|missing required|required (?:parameter|property)|parse"
    r"|syntax|wrong type|expected .{1,80} (?:got|received)|\b(?:400|422)\b"
    r"|not unique|to replace|has not been read|unexpected",
    re.IGNORECASE,
)
_EXIT_CODE = re.compile(r"^(?:Error: )?Exit code \d+", re.IGNORECASE)
_SCANNED_CHARACTERS = 4096

_SUGGESTIONS = {
    FailureKind.RETRYABLE: (
        "The cause may pass by itself. Wait a moment or ask for less, then try once"
        " more; otherwise go another way."
    ),
    FailureKind.FIXABLE: (
        "Read the error, correct the input that it names, and only then call the tool"
        " again."
    ),
    FailureKind.TERMINAL: (
        "The same call will fail again. Find out why first, or go another way."
    ),
}
_ALTERNATIVES: dict[str, tuple[str, ...]] = {
    "fetch": (),
    "WebFetch": ("WebSearch",),
    "Bash": ("Read", "Glob", "Grep"),
    "Grep": ("Glob", "Read"),
    "Glob": ("Grep", "Bash"),
    "Edit": ("Read", "Write"),
    "MultiEdit": ("Read", "Write"),
    "NotebookEdit": ("Read",),
    "Write": ("Read", "Edit"),
}


def failure_kind(tool_name: str, error: str) -> FailureKind:
    """First match: no permission, not found, may pass by itself, wrong input."""
    said = error[:_SCANNED_CHARACTERS]
    if _FORBIDDEN.search(said):
        return FailureKind.TERMINAL
    if _MISSING.search(said):
        is_web = tool_name in _WEB_TOOLS
        return FailureKind.TERMINAL if is_web else FailureKind.FIXABLE
    if _PASSING.search(said):
        return FailureKind.RETRYABLE
    if _WRONG_INPUT.search(said) or _EXIT_CODE.search(said):
        return FailureKind.FIXABLE
    return FailureKind.TERMINAL


def advise(tool_name: str, error: str) -> Advice:
    kind = failure_kind(tool_name, error)
    name = tool_name.rpartition("__")[2]
    alternatives = _ALTERNATIVES.get(name, ())
    if name == "Read" and _MISSING.search(error[:_SCANNED_CHARACTERS]):
        alternatives = ("Glob", "Grep")
    return Advice(kind, _SUGGESTIONS[kind], alternatives)
