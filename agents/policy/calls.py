"""A tool call as the policy sees it, and the paths and commands that it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .tools import ToolClass

PATH_FIELDS: Final[Mapping[str, str]] = {
    "Read": "file_path",
    "Edit": "file_path",
    "Write": "file_path",
    "NotebookEdit": "notebook_path",
    "Glob": "path",
    "Grep": "path",
}
# The search tools start in the working directory when no path is given.
_OPTIONAL_PATH: Final = frozenset({"Glob", "Grep"})
# Grep's `pattern` is a regular expression; what it takes as a file pattern is `glob`.
_FILE_PATTERN_FIELDS: Final[Mapping[str, str]] = {"Glob": "pattern", "Grep": "glob"}
# What tools other than Bash call their shell input.
_COMMAND_FIELDS: Final = ("command", "cmd", "script")


@dataclass(frozen=True, slots=True)
class ToolCall:
    tool_name: str
    tool_input: Mapping[str, Any]
    agent_id: str | None = None
    permission_mode: str = "default"


def is_path_tool(tool_name: str) -> bool:
    return tool_name in PATH_FIELDS


def named_path(call: ToolCall) -> str | None:
    """The path that a file tool was given; None if there is no usable one."""
    field = PATH_FIELDS[call.tool_name]
    value = call.tool_input.get(field)
    if call.tool_name in _OPTIONAL_PATH and value in (None, ""):
        return "."
    return value if isinstance(value, str) and value else None


def file_pattern(call: ToolCall) -> str | None:
    value = call.tool_input.get(_FILE_PATTERN_FIELDS.get(call.tool_name, ""))
    return value if isinstance(value, str) else None


def shell_inputs(call: ToolCall, tool_class: ToolClass) -> list[str]:
    """The commands in a call of an execute-class tool."""
    if tool_class is not ToolClass.EXECUTE:
        return []
    fields = ("command",) if call.tool_name == "Bash" else _COMMAND_FIELDS
    values = [call.tool_input.get(field) for field in fields]
    return [value for value in values if isinstance(value, str)]
