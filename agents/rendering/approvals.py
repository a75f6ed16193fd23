"""What an approval card says: what would run, on what, and what to look at twice.

The card shows the input that will really run. The warnings are hints for a reader's
eye, made from words alone; whether a call may run is `policy`'s business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from .text import editable_json_text, has_invisible, reveal_invisible
from .tool_calls import ToolView, tool_view
from .tool_inputs import as_dict, as_text, first_text, strings_in

_MAX_TARGET_CHARS = 4096
_MAX_EDITABLE_CHARS = 64 * 1024
_HEADLINES = {
    "Bash": "Run a command",
    "Write": "Write a file",
    "Edit": "Edit a file",
    "MultiEdit": "Edit a file",
    "NotebookEdit": "Edit a notebook",
    "Read": "Read a file",
    "Glob": "Find files",
    "Grep": "Search in files",
    "LS": "List a folder",
    "WebFetch": "Fetch a web page",
    "WebSearch": "Search the web",
    "Agent": "Start a sub-agent",
    "Task": "Start a sub-agent",
    "Skill": "Use a skill",
    "AskUserQuestion": "Answer a question",
    "EnterPlanMode": "Start planning",
    "ExitPlanMode": "Approve a plan",
    "TodoWrite": "Update the to-do list",
    "SandboxNetworkAccess": "Connect to a server",
}
_TARGET_FIELDS = (
    "command",
    "file_path",
    "notebook_path",
    "path",
    "url",
    "host",
    "pattern",
    "query",
    "skill",
    "description",
)
# Each pattern of a row must be found in one line. None may contain ".*", which takes
# quadratic time on a long line.
_COMMAND_RISKS = (
    ("deletes files", r"\b(?:rm|rmdir|shred|unlink)\b"),
    ("deletes files", r"\bfind\b", r"\s-delete\b"),
    ("runs as another user", r"\b(?:sudo|su|doas|setpriv|pkexec)\b"),
    ("runs what it downloads", r"\b(?:curl|wget)\b", r"\|\s*[\w/]*sh\b"),
    (
        "uses the network",
        r"(?<![.\w-])(?:curl|wget|ssh|scp|rsync|nc|ncat|ftp)\b",
    ),
    ("changes permissions", r"\b(?:chmod|chown|chgrp|setfacl)\b"),
    ("overwrites a disk", r"\b(?:mkfs|fdisk|parted)\b"),
    ("overwrites a disk", r"\bdd\b", r"\bof="),
    ("ends processes", r"\b(?:kill|pkill|killall)\b"),
    ("pushes to a remote", r"\bgit\b", r"\bpush\b"),
    ("discards work", r"\bgit\b", r"\s(?:--force|-f|--hard|clean)\b"),
    ("builds a command from text", r"\b(?:eval|base64|xargs)\b"),
    ("installs software", r"\b(?:pip3?|npm|apt|apt-get|gem|cargo|brew)\s+install\b"),
)
_COMMAND_PATTERNS = tuple(
    (words, tuple(map(re.compile, patterns))) for words, *patterns in _COMMAND_RISKS
)
_SECRET_PATH = re.compile(
    r"(?:^|[/\s'\"=])(?:\.ssh|\.aws|\.gnupg|\.netrc|\.env|id_rsa|credentials)\b"
)
_SCAN_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """`tool` holds icon, label and body; `target` is revealed HTML.

    `editable_json` is plain JSON for a textarea, hidden characters as escapes; empty
    when the input is too long to edit by hand.
    """

    headline: str
    target: SafeString
    tool: ToolView
    risks: list[str]
    editable_json: str


def approval_view(tool_name: str, tool_input: Any) -> ApprovalView:
    """The card of a call that waits; never raises, whatever the input is."""
    name, data = as_text(tool_name), as_dict(tool_input)
    view = tool_view(name, tool_input, None)
    headline = _HEADLINES.get(name, "Use a tool")
    target = reveal_invisible(_shorten(first_text(data, *_TARGET_FIELDS)))
    editable = editable_json_text(tool_input)
    return ApprovalView(
        headline=headline,
        target=target or view.label or reveal_invisible(headline),
        tool=view,
        risks=_risks(name, tool_input, is_cut=view.context["truncated"]),
        editable_json=editable if len(editable) <= _MAX_EDITABLE_CHARS else "",
    )


def _shorten(target: str) -> str:
    cut = target[:_MAX_TARGET_CHARS]
    return cut if cut == target else f"{cut}…"


def _risks(name: str, tool_input: Any, *, is_cut: bool) -> list[str]:
    data = as_dict(tool_input)
    command = first_text(data, "command") if name == "Bash" else ""
    risks = _command_risks(command[:_SCAN_CHARS])
    if _SECRET_PATH.search(command or first_text(data, "file_path", "path")):
        risks.append("touches credentials")
    if is_cut or len(command) > _MAX_TARGET_CHARS:
        risks.append("too long to show whole")
    if any(map(has_invisible, strings_in(tool_input))):
        risks.append("contains hidden characters")
    return risks


def _command_risks(command: str) -> list[str]:
    lines = command.split("\n")
    found = (
        words
        for words, patterns in _COMMAND_PATTERNS
        if any(all(pattern.search(line) for pattern in patterns) for line in lines)
    )
    return list(dict.fromkeys(found))
