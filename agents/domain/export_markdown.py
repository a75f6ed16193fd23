"""A session as a text that people read: Markdown, one chapter a branch."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from agents.models import AgentSession
from agents.models.messages import MessageRole
from agents.rendering.figures import usd

from .export import export_session

_TICKS = re.compile("`+")
_NAMES = {
    MessageRole.USER: "User",
    MessageRole.ASSISTANT: "Agent",
    MessageRole.THINKING: "Agent, thinking",
    MessageRole.TOOL_CALL: "Tool call",
    MessageRole.TOOL_RESULT: "Tool result",
    MessageRole.SYSTEM: "Notice",
}
_OUTCOMES = {"error": "failed", "denied": "denied", "cancelled": "cancelled"}


def export_markdown(session: AgentSession) -> str:
    return "\n".join(_Document(export_session(session)).lines()) + "\n"


class _Document:
    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data
        self._messages: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for message in data["messages"]:
            if not message["hidden"]:
                self._messages[message["branch_id"]].append(message)
        self._approvals = {row["tool_use_id"]: row for row in data["approvals"]}
        self._numbers = {
            branch["id"]: number
            for number, branch in enumerate(data["branches"], start=1)
        }
        self._seqs = {row["id"]: row["seq"] for row in data["messages"]}

    def lines(self) -> Iterator[str]:
        session = self._data["session"]
        yield f"# {_one_line(session['name'])}"
        yield ""
        yield f"- Started: {session['created_at']}"
        yield f"- Mode: {session['mode']}"
        yield f"- Model: {', '.join(self._models()) or session['model'] or 'unknown'}"
        yield f"- Cost: {self._cost()}"
        yield f"- Tokens: {session['input_tokens']} in, {session['output_tokens']} out"
        if session["system_prompt"]:
            yield from ("", "## System prompt", "", *_fenced(session["system_prompt"]))
        for branch in self._data["branches"]:
            yield from self._branch(branch)

    def _models(self) -> list[str]:
        return sorted({run["model_actual"] for run in self._data["runs"]} - {""})

    def _cost(self) -> str:
        session = self._data["session"]
        known = usd(session["cost_usd_micros"])
        return f"at least {known}" if session["cost_is_partial"] else known

    def _branch(self, branch: dict[str, Any]) -> Iterator[str]:
        if len(self._numbers) > 1:
            is_shown = branch["id"] == self._data["active_branch_id"]
            shown = " (shown)" if is_shown else ""
            yield from ("", f"## Branch {self._numbers[branch['id']]}{shown}")
        if branch["parent_id"] in self._numbers:
            seq = self._seqs.get(branch["fork_message_id"], 0)
            parent = self._numbers[branch["parent_id"]]
            yield ""
            yield f"Goes on from branch {parent}, in place of its message {seq}."
        for message in self._messages[branch["id"]]:
            yield from ("", *self._message(message))

    def _message(self, message: dict[str, Any]) -> Iterator[str]:
        yield f"### {message['seq']}. {self._title(message)}"
        yield ""
        role = message["role"]
        if role == MessageRole.TOOL_CALL:
            given = message["content"].get("input", {})
            yield from _fenced(json.dumps(given, ensure_ascii=False, indent=2), "json")
            yield from _original(message["content"])
            yield from self._approval(message)
        elif role == MessageRole.TOOL_RESULT:
            yield from _fenced(message["text"])
            yield from _images(message["content"].get("images"))
        elif role == MessageRole.THINKING:
            yield from (f"> {line}" for line in message["text"].splitlines())
        else:
            yield message["text"]
        yield from _attachments(message["attachments"])
        if message["is_interrupted"]:
            yield from ("", "*Stopped here.*")

    def _title(self, message: dict[str, Any]) -> str:
        role = message["role"]
        name = _NAMES[MessageRole(role)]
        if role == MessageRole.USER and message["author"]:
            name = _one_line(message["author"])
        if message["tool_name"]:
            name = f"{name}: {_one_line(message['tool_name'])}"
        if message["outcome"] in _OUTCOMES:
            name = f"{name} ({_OUTCOMES[message['outcome']]})"
        return f"{name}, {message['created_at']}"

    def _approval(self, call: dict[str, Any]) -> Iterator[str]:
        approval = self._approvals.get(call["tool_use_id"])
        if approval is None:
            return
        by = (
            f" by {_one_line(approval['decided_by'])}" if approval["decided_by"] else ""
        )
        words = f": {_one_line(approval['message'])}" if approval["message"] else ""
        yield ""
        yield f"*{approval['status'].capitalize()}{by}{words}*"
        if approval["updated_input"] is not None and not _is_edited(call["content"]):
            changed = json.dumps(
                approval["updated_input"], ensure_ascii=False, indent=2
            )
            yield from ("", "With this input instead:", "", *_fenced(changed, "json"))


def _is_edited(content: dict[str, Any]) -> bool:
    return "original_input" in content


def _original(content: dict[str, Any]) -> Iterator[str]:
    """What the model wrote, where a person changed it before it ran."""
    if _is_edited(content):
        original = json.dumps(content["original_input"], ensure_ascii=False, indent=2)
        yield from ("", "The model wrote:", "", *_fenced(original, "json"))


def _fenced(text: str, language: str = "") -> Iterator[str]:
    """A code block that its text can't end."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield text
    yield fence


def _images(images: Any) -> Iterator[str]:
    if isinstance(images, list) and images:
        yield from ("", f"*{len(images)} image(s), in the JSON export.*")


def _attachments(attachments: dict[str, Any]) -> Iterator[str]:
    named = [
        f"{kind.replace('_', ' ')}: {_one_line(_name_of(item))}"
        for kind in ("context_paths", "skills", "forced_tools")
        for item in _listed(attachments.get(kind))
    ]
    if named:
        yield ""
        yield from (f"- Attached {name}" for name in named)
    yield from _images(attachments.get("images"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _name_of(item: Any) -> str:
    if isinstance(item, dict):
        return str(item.get("path") or item.get("name") or "unnamed")
    return str(item)


def _one_line(text: str) -> str:
    return " ".join(text.split())
