"""How each tool's calls are shown: icon, label, one-line summary and a body.

`tool_view` never raises, whatever the model or a tool sent. Its `context` goes to
`templates/agents/tools/_<kind>.html` (`ToolView.template`). In every context:

    truncated: bool        cut to `max_bytes`; offer "Show all"
    is_error: bool         the tool failed or was denied
    notice: SafeString     words of the tool beside the body: its error, a warning

and by kind (strings are SafeString, escaped and with hidden characters revealed,
unless said otherwise):

    terminal   command (highlighted), description, output, exit_code (int or None:
               running, interrupted, unknown), interrupted, background (bool)
    diff       path, rows (list of `diffs.DiffRow`), added, removed (int),
               replace_all (bool)
    code       path, language (str, may be empty), start_line, line_count (int), html
    list       items (list), total (int: before cutting)
    checklist  items (list of {text, state}), done, total (int); state is one of
               pending, in_progress, completed, deleted
    question   questions: list of {key (str: the plain question, under which the
               answer travels), text, header, multi_select (bool), answer, options:
               list of {value (str: plain label, for the form), label, description,
               chosen (bool)}}
    image      sources (list of str: checked data URLs), refused (int), text
    json       input, output (highlighted)
    text       prompt, html (rendered Markdown: put it in a <div class="markdown">)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from agents.conf import conf

from . import tool_bodies as bodies
from .text import json_text, preview, reveal_invisible
from .tool_bodies import Body, BodyKind, ToolContext
from .tool_inputs import ToolCall, ToolResult, as_text, dicts

__all__ = ["ToolResult", "ToolView", "tool_view"]

_SUMMARY_CHARS = 160
_LABEL_CHARS = 80


@dataclass(frozen=True, slots=True)
class ToolView:
    icon: str
    label: SafeString
    summary: SafeString
    kind: BodyKind
    context: ToolContext

    @property
    def template(self) -> str:
        return f"agents/tools/_{self.kind}.html"


@dataclass(frozen=True, slots=True)
class _Tool:
    icon: str
    label: str
    body: Callable[[ToolCall], Body]
    summary: Callable[[ToolCall], str]


def tool_view(
    tool_name: str,
    tool_input: Any,
    result: ToolResult | None,
    *,
    max_bytes: int | None = None,
) -> ToolView:
    """What a transcript shows of one call; `result` is None while it runs.

    `max_bytes` caps each text of the body (default: `conf().message_preview_bytes`).
    """
    limit = max_bytes or conf().message_preview_bytes
    call = ToolCall(as_text(tool_name), tool_input, result, limit)
    tool = _TOOLS.get(call.name) or _unknown_tool(call.name)
    body = bodies.image_body(call) or tool.body(call)
    return ToolView(
        icon=tool.icon,
        label=reveal_invisible(preview(tool.label, _LABEL_CHARS)),
        summary=reveal_invisible(preview(tool.summary(call), _SUMMARY_CHARS)),
        kind=body.kind,
        context=body.context,
    )


def _unknown_tool(name: str) -> _Tool:
    """MCP tools are `mcp__<server>__<tool>`; others are new to this version."""
    kind, _, rest = name.partition("__")
    server, _, tool = rest.partition("__")
    if kind == "mcp" and server and tool:
        return _Tool("plug", f"{server}: {tool}", bodies.json_body, _first_value)
    return _Tool("wrench", name or "Tool", bodies.json_body, _first_value)


def _field(*names: str) -> Callable[[ToolCall], str]:
    return lambda call: call.text(*names)


def _first_value(call: ToolCall) -> str:
    strings = (value for value in call.input.values() if isinstance(value, str))
    text = next(filter(str.strip, strings), "")
    return text or (json_text(call.raw_input) if call.raw_input else "")


def _read_summary(call: ToolCall) -> str:
    path = call.text("file_path")
    offset, limit = call.input.get("offset"), call.input.get("limit")
    match offset, limit:
        case int(), int():
            return f"{path}, lines {offset} to {offset + limit - 1}"
        case int(), _:
            return f"{path}, from line {offset}"
        case _, int():
            return f"{path}, first {limit} lines"
        case _:
            return path


def _search_summary(call: ToolCall) -> str:
    pattern, path = call.text("pattern", "query"), call.text("path", "glob")
    return f"{pattern} in {path}" if path else pattern


def _checklist_summary(call: ToolCall) -> str:
    todos = dicts(call.input.get("todos"))
    if not todos:
        return call.text("subject", "taskId", "description")
    done = sum(todo.get("status") == "completed" for todo in todos)
    return f"{done} of {len(todos)} done"


def _question_summary(call: ToolCall) -> str:
    asked = dicts(call.input.get("questions"))
    return as_text(asked[0].get("question")) if asked else ""


_PATH = _field("file_path", "notebook_path", "path")
_TASK = _Tool("list-todo", "Task", bodies.checklist_body, _checklist_summary)
_TASK_LIST = _Tool("list-todo", "Tasks", bodies.checklist_body, _checklist_summary)
_AGENT = _Tool(
    "bot", "Agent", bodies.agent_body, _field("description", "subagent_type", "prompt")
)
_EDIT = _Tool("file-pen", "Edit", bodies.edit_body, _PATH)
_JOB = _Tool("terminal", "Background job", bodies.json_body, _first_value)
_TOOLS: dict[str, _Tool] = {
    "Bash": _Tool(
        "square-terminal",
        "Bash",
        bodies.terminal_body,
        _field("description", "command"),
    ),
    "Read": _Tool("file-text", "Read", bodies.read_body, _read_summary),
    "Edit": _EDIT,
    "MultiEdit": _EDIT,
    "Write": _Tool("file-plus", "Write", bodies.write_body, _PATH),
    "NotebookEdit": _Tool("notebook-pen", "Edit notebook", bodies.write_body, _PATH),
    "Glob": _Tool("folder-tree", "Find files", bodies.list_body, _search_summary),
    "Grep": _Tool("search", "Search", bodies.list_body, _search_summary),
    "LS": _Tool("folder", "List", bodies.list_body, _PATH),
    "TodoWrite": _Tool(
        "list-checks", "To-do list", bodies.checklist_body, _checklist_summary
    ),
    "TaskCreate": _TASK,
    "TaskUpdate": _TASK,
    "TaskGet": _TASK,
    "TaskList": _TASK_LIST,
    "AskUserQuestion": _Tool(
        "message-circle-question", "Question", bodies.question_body, _question_summary
    ),
    "Agent": _AGENT,
    "Task": _AGENT,
    "mcp__openswarm-invoke-agent__InvokeAgent": _Tool(
        "bot", "Ask a session", bodies.text_body, _field("message")
    ),
    "ExitPlanMode": _Tool("clipboard-list", "Plan", bodies.text_body, _field("plan")),
    "WebFetch": _Tool("globe", "Fetch", bodies.text_body, _field("url")),
    "WebSearch": _Tool("globe", "Web search", bodies.text_body, _field("query")),
    "Skill": _Tool(
        "sparkles", "Skill", bodies.text_body, _field("skill", "command", "name")
    ),
    "ToolSearch": _Tool("search", "Find tools", bodies.json_body, _search_summary),
    "TaskOutput": _JOB,
    "TaskStop": _JOB,
    "BashOutput": _JOB,
    "KillShell": _JOB,
}
