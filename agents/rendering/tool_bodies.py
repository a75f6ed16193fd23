"""The bodies of tool calls: one builder and one typed context per kind.

The contexts are documented in `tool_calls.py`, for whoever writes the templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Any, Literal, TypedDict

from django.utils.safestring import SafeString

from .code import highlight_code, language_name
from .diffs import DiffRow, count_rows, cut_rows, diff_texts, rows_from_structured_patch
from .markdown import render_markdown
from .terminal import render_terminal
from .text import clean_text, json_text, reveal_invisible, truncate_bytes
from .tool_inputs import (
    ToolCall,
    as_dict,
    as_int,
    as_list,
    as_text,
    dicts,
    first_text,
    image_urls,
    texts,
)

BodyKind = Literal[
    "terminal",
    "diff",
    "code",
    "list",
    "checklist",
    "question",
    "image",
    "json",
    "text",
]
ItemState = Literal["pending", "in_progress", "completed", "deleted"]

_NOTICE_BYTES = 8 * 1024
_MAX_QUESTIONS, _MAX_OPTIONS = 10, 20
_EXIT_CODE = re.compile(r"\A(?:Error: )?Exit code (\d{1,5})(?:\n|\Z)")
# The CLI numbers the lines of a Read result; the separator differs by version and,
# for files with tabs, by content.
_NUMBERED = re.compile(r" *(\d{1,9})[→\t:](.*)", re.DOTALL)


class CommonContext(TypedDict):
    truncated: bool
    is_error: bool
    notice: SafeString


class TerminalContext(CommonContext):
    command: SafeString
    description: SafeString
    output: SafeString
    exit_code: int | None
    interrupted: bool
    background: bool


class DiffContext(CommonContext):
    path: SafeString
    rows: list[DiffRow]
    added: int
    removed: int
    replace_all: bool


class CodeContext(CommonContext):
    path: SafeString
    language: str
    start_line: int
    line_count: int
    html: SafeString


class ListContext(CommonContext):
    items: list[SafeString]
    total: int


class ChecklistItem(TypedDict):
    text: SafeString
    state: ItemState


class ChecklistContext(CommonContext):
    items: list[ChecklistItem]
    done: int
    total: int


class QuestionOption(TypedDict):
    value: str
    label: SafeString
    description: SafeString
    chosen: bool


class Question(TypedDict):
    key: str
    text: SafeString
    header: SafeString
    multi_select: bool
    options: list[QuestionOption]
    answer: SafeString


class QuestionContext(CommonContext):
    questions: list[Question]


class ImageContext(CommonContext):
    sources: list[str]
    refused: int
    text: SafeString


class JsonContext(CommonContext):
    input: SafeString
    output: SafeString


class TextContext(CommonContext):
    prompt: SafeString
    html: SafeString


ToolContext = (
    TerminalContext
    | DiffContext
    | CodeContext
    | ListContext
    | ChecklistContext
    | QuestionContext
    | ImageContext
    | JsonContext
    | TextContext
)


@dataclass(frozen=True, slots=True)
class Body:
    kind: BodyKind
    context: ToolContext


def _common(
    call: ToolCall, *, truncated: bool = False, notice: str = ""
) -> CommonContext:
    """What all contexts share; an error's words are always shown."""
    notice = notice or (call.result_text if call.is_error else "")
    shown, _ = truncate_bytes(notice, _NOTICE_BYTES)
    return {
        "truncated": truncated,
        "is_error": call.is_error,
        "notice": reveal_invisible(shown),
    }


def terminal_body(call: ToolCall) -> Body:
    command, command_cut = call.cut(call.text("command"))
    exit_code, output = _exit_code_and_output(call)
    shown, output_cut = call.cut(output)
    context: TerminalContext = {
        **_common(call, truncated=command_cut or output_cut),
        "notice": SafeString(""),  # the output has it
        "command": highlight_code(command, language="bash"),
        "description": reveal_invisible(call.text("description")[:500]),
        "output": render_terminal(shown),
        "exit_code": exit_code,
        "interrupted": call.structured.get("interrupted") is True,
        "background": bool(
            call.input.get("run_in_background") is True
            or call.structured.get("backgroundTaskId")
        ),
    }
    return Body("terminal", context)


def _exit_code_and_output(call: ToolCall) -> tuple[int | None, str]:
    """A failed command's result starts with its code; a success has none to tell."""
    if match := _EXIT_CODE.match(call.result_text):
        return int(match[1]), call.result_text[match.end() :]
    streams = [as_text(call.structured.get(name)) for name in ("stdout", "stderr")]
    output = "\n".join(filter(None, streams)) or call.result_text
    ended = call.structured.get("interrupted") is not True and not (
        call.structured.get("backgroundTaskId") or call.is_error
    )
    return (0 if call.result and ended else None), output


def edit_body(call: ToolCall) -> Body:
    rows = rows_from_structured_patch(call.structured.get("structuredPatch"))
    truncated = False
    if not rows:
        edits = dicts(call.input.get("edits")) or [call.input]
        for edit in edits[: call.max_rows]:
            old, old_cut = call.cut(first_text(edit, "old_string", "old_source"))
            new, new_cut = call.cut(first_text(edit, "new_string", "new_source"))
            rows += diff_texts(old, new, filename=_path(call))
            truncated = truncated or old_cut or new_cut
            if len(rows) > call.max_rows:
                break
    return _diff_body(call, rows, truncated=truncated)


def write_body(call: ToolCall) -> Body:
    rows = rows_from_structured_patch(call.structured.get("structuredPatch"))
    truncated = False
    if not rows:
        old, old_cut = call.cut(first_text(call.structured, "originalFile"))
        new, new_cut = call.cut(call.text("content", "new_source"))
        rows = diff_texts(old, new, filename=_path(call))
        truncated = old_cut or new_cut
    return _diff_body(call, rows, truncated=truncated)


def _diff_body(call: ToolCall, rows: Sequence[DiffRow], *, truncated: bool) -> Body:
    shown, rows_cut = cut_rows(rows, call.max_rows)
    context: DiffContext = {
        **_common(call, truncated=truncated or rows_cut),
        "path": reveal_invisible(_path(call)),
        "rows": shown,
        "added": count_rows(rows, "add"),
        "removed": count_rows(rows, "del"),
        "replace_all": call.input.get("replace_all") is True,
    }
    return Body("diff", context)


def _path(call: ToolCall) -> str:
    return call.text("file_path", "notebook_path", "path")[:4096]


def read_body(call: ToolCall) -> Body:
    if call.is_error:
        return text_body(call)
    text, start_line, notice = _file_lines(call)
    shown, truncated = call.cut(text)
    context: CodeContext = {
        **_common(call, truncated=truncated, notice=notice),
        "path": reveal_invisible(_path(call)),
        "language": language_name(filename=_path(call)),
        "start_line": start_line,
        "line_count": shown.count("\n") + 1 if shown else 0,
        "html": highlight_code(shown, filename=_path(call)),
    }
    return Body("code", context)


def _file_lines(call: ToolCall) -> tuple[str, int, str]:
    """The file's own text, its first line's number, and what the CLI added to it."""
    file = as_dict(call.structured.get("file"))
    if isinstance(content := file.get("content"), str):
        return content, as_int(file.get("startLine")) or 1, ""
    return strip_line_numbers(call.result_text)


def strip_line_numbers(text: str) -> tuple[str, int, str]:
    """Take the CLI's numbering off a Read result: (text, first number, the rest).

    Only a run of consecutive numbers from the top counts, so a file that itself
    contains such prefixes keeps them.
    """
    lines = text.split("\n")
    first = _NUMBERED.match(lines[0])
    if first is None:
        return text, 1, ""
    start = int(first[1])
    kept: list[str] = []
    for line in lines:
        match = _NUMBERED.match(line)
        if match is None or int(match[1]) != start + len(kept):
            break
        kept.append(match[2])
    return "\n".join(kept), start, "\n".join(lines[len(kept) :]).strip()


def list_body(call: ToolCall) -> Body:
    names = texts(call.structured.get("filenames"))
    content = first_text(call.structured, "content")
    if content or not names:
        text = "" if call.is_error else (content or call.result_text)
        names = [line for line in text.split("\n") if line.strip()]
    shown, truncated = _fitting(call, names)
    context: ListContext = {
        **_common(call, truncated=truncated),
        "items": [reveal_invisible(name) for name in shown],
        "total": len(names),
    }
    return Body("list", context)


def _fitting(call: ToolCall, names: list[str]) -> tuple[list[str], bool]:
    text, cut = call.cut("\n".join(names[: call.max_rows]))
    return text.split("\n") if text else [], cut or len(names) > call.max_rows


def checklist_body(call: ToolCall) -> Body:
    entries = _checklist_entries(call)
    items = [_checklist_item(entry) for entry in entries[: call.max_rows]]
    context: ChecklistContext = {
        **_common(call, truncated=len(entries) > len(items)),
        "items": items,
        "done": sum(item["state"] == "completed" for item in items),
        "total": len(entries),
    }
    return Body("checklist", context)


def _checklist_entries(call: ToolCall) -> list[dict[str, Any]]:
    """Todos of TodoWrite and TaskList, or the one task the other Task tools name."""
    for value in (
        call.input.get("todos"),
        call.structured.get("newTodos"),
        call.structured.get("tasks"),
    ):
        if entries := dicts(value):
            return entries
    task = {**as_dict(call.structured.get("task")), **call.input}
    return [task] if task else []


def _checklist_item(entry: dict[str, Any]) -> ChecklistItem:
    number = entry.get("taskId") or entry.get("id")
    text = first_text(entry, "content", "subject", "description")
    text = text or f"Task {number or ''}".rstrip()
    state: ItemState = "pending"
    match entry.get("status"):
        case "in_progress" | "completed" | "deleted" as known:
            state = known
    return {"text": reveal_invisible(text[:1000]), "state": state}


def question_body(call: ToolCall) -> Body:
    answers = as_dict(call.input.get("answers")) or as_dict(
        call.structured.get("answers")
    )
    asked = dicts(call.input.get("questions"))
    if not asked:
        return json_body(call)
    context: QuestionContext = {
        **_common(call, truncated=len(asked) > _MAX_QUESTIONS),
        "questions": [_question(item, answers) for item in asked[:_MAX_QUESTIONS]],
    }
    return Body("question", context)


def _question(item: dict[str, Any], answers: dict[str, Any]) -> Question:
    key = as_text(item.get("question"))
    answer = answers.get(key)
    chosen = set(texts(answer)) if isinstance(answer, list) else set()
    if isinstance(answer, str):
        chosen |= {answer, *(part.strip() for part in answer.split(","))}
    return {
        "key": clean_text(key),
        "text": reveal_invisible(key[:4000]),
        "header": reveal_invisible(as_text(item.get("header"))[:200]),
        "multi_select": item.get("multiSelect") is True,
        "options": [
            _option(option, chosen)
            for option in as_list(item.get("options"))[:_MAX_OPTIONS]
        ],
        "answer": reveal_invisible(
            ", ".join(texts(answer)) if isinstance(answer, list) else as_text(answer)
        ),
    }


def _option(option: Any, chosen: set[str]) -> QuestionOption:
    fields = as_dict(option)
    value = as_text(fields.get("label")) if fields else as_text(option)
    return {
        "value": clean_text(value),
        "label": reveal_invisible(value[:500]),
        "description": reveal_invisible(as_text(fields.get("description"))[:2000]),
        "chosen": value in chosen,
    }


def image_body(call: ToolCall) -> Body | None:
    """The body of any call whose result holds a picture we may show; else None."""
    sources, refused = image_urls(call)
    if not sources:
        return None
    text, truncated = call.cut(call.result_text)
    context: ImageContext = {
        **_common(call, truncated=truncated),
        "sources": sources,
        "refused": refused,
        "text": reveal_invisible(text),
    }
    return Body("image", context)


def json_body(call: ToolCall) -> Body:
    given, input_cut = call.cut(json_text(call.raw_input))
    output, output_cut = call.cut(_pretty(call.result_text))
    context: JsonContext = {
        **_common(call, truncated=input_cut or output_cut),
        "notice": SafeString(""),  # the output has it
        "input": highlight_code(given, language="json"),
        "output": highlight_code(output, language="json")
        if output.startswith(("{", "["))
        else reveal_invisible(output),
    }
    return Body("json", context)


def _pretty(text: str) -> str:
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json_text(json.loads(text))
    except (ValueError, RecursionError):
        return text


def text_body(call: ToolCall) -> Body:
    """Prose: what was asked for, and the answer as Markdown unless it is an error."""
    return _prose(call, call.text("plan") or call.result_text)


# What the CLI puts around a sub-agent's report, for the model's eyes.
_REPORT = re.compile(r"The report follows:\n(.*?)\n *agentId:", re.DOTALL)


def agent_body(call: ToolCall) -> Body:
    """What a sub-agent was asked, and its report without the CLI's frame."""
    report = _REPORT.search(call.result_text)
    return _prose(call, dedent(report[1]) if report else call.result_text)


def _prose(call: ToolCall, answer: str) -> Body:
    prompt, prompt_cut = call.cut(
        call.text("prompt", "query", "url", "args", "message")
    )
    shown, answer_cut = call.cut("" if call.is_error else answer)
    context: TextContext = {
        **_common(call, truncated=prompt_cut or answer_cut),
        "prompt": reveal_invisible(prompt),
        "html": render_markdown(shown),
    }
    return Body("text", context)
