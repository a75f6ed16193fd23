"""Items of a transcript: a message, or a tool call with all that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.utils.safestring import SafeString

from agents.domain.attachments import ATTACHED
from agents.models import Message
from agents.models.messages import MessageRole
from agents.rendering.dom import dom_id
from agents.rendering.stored import stored_html
from agents.rendering.tool_calls import ToolView

from .approvals import ApprovalCard
from .branches import Navigator
from .children import Child

CHANGES = "changes"
"""The kind of the notice with which a turn that changed files ends."""
_TEMPLATES: dict[str, str] = {
    MessageRole.THINKING: "agents/messages/_thinking.html",
    MessageRole.TOOL_CALL: "agents/tools/_item.html",
    MessageRole.SYSTEM: "agents/messages/_notice.html",
}
_STATES = {"ok": "done", "error": "error", "denied": "denied", "cancelled": "stopped"}
_STATE_WORDS = {
    "running": "Running",
    "waiting": "Needs you",
    "done": "Done",
    "error": "Failed",
    "denied": "Denied",
    "stopped": "Stopped",
}
_LOUD_STATES = ("error", "denied")
_OPEN_KINDS = ("diff", "checklist", "image", "question", "agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A message, or a tool call with its result, its approval and what it started."""

    message: Message
    is_cut: bool = False
    characters: int = 0
    tool: ToolView | None = None
    result: Message | None = None
    approval: ApprovalCard | None = None
    children: tuple[Item, ...] = ()
    child: Child | None = None
    """The session that the call started."""
    said_by: str = ""
    """Who speaks, where the row doesn't tell."""
    navigator: Navigator | None = None
    can_operate: bool = False

    @property
    def can_edit(self) -> bool:
        return self.can_operate and self.message.role == MessageRole.USER

    @property
    def can_regenerate(self) -> bool:
        return (
            self.can_operate
            and self.message.role == MessageRole.ASSISTANT
            and not self.message.parent_tool_use_id
        )

    @property
    def can_duplicate(self) -> bool:
        return self.can_edit or self.can_regenerate

    @property
    def attached(self) -> dict[str, list[str]]:
        """The names of what came with a person's message, by kind."""
        content = self.message.content
        if self.message.role != MessageRole.USER or not isinstance(content, dict):
            return {}
        found = content.get(ATTACHED)
        return found if isinstance(found, dict) else {}

    @property
    def element_id(self) -> str:
        return element_id(self.message)

    @property
    def text_id(self) -> str:
        return text_id(self.message.pk)

    @property
    def is_html(self) -> bool:
        """Whether the finished Markdown stands in the page, and not a cut text."""
        return bool(self.message.rendered_html) and not self.is_cut

    @property
    def html(self) -> SafeString:
        return stored_html(self.message.rendered_html)

    @property
    def speaker(self) -> str:
        if self.said_by or self.message.role != MessageRole.USER:
            return self.said_by or "Agent"
        author = self.message.author
        return author.get_username() if author else "You"

    @property
    def state(self) -> str:
        """Of a tool call: running, waiting, done, error, denied or stopped."""
        if self.approval is not None and self.approval.is_pending:
            return "waiting"
        if self.result is None:
            return "stopped" if self.message.is_interrupted else "running"
        return _STATES.get(self.result.outcome, "done")

    @property
    def state_word(self) -> str:
        return _STATE_WORDS[self.state]

    @property
    def is_edited(self) -> bool:
        """Whether a person changed the input before it ran."""
        return "original_input" in self.message.content

    @property
    def card_kind(self) -> str:
        assert self.tool is not None, "only tool calls have cards"
        return "agent" if self.children or self.child else self.tool.kind

    @property
    def is_open(self) -> bool:
        """What a reader wants to see at once: changes, lists, pictures, trouble."""
        if self.approval is not None and self.state in ("waiting", "denied"):
            return False  # the approval card says it
        return self.state in _LOUD_STATES or self.card_kind in _OPEN_KINDS

    @property
    def is_shortened(self) -> bool:
        if self.tool is None:
            return False
        return self.is_cut or bool(self.tool.context["truncated"])

    @property
    def correction(self) -> dict[str, Any]:
        """What self-correction made of a failed call; empty for others."""
        content = self.result.content if self.result is not None else {}
        noted = content.get("correction") if isinstance(content, dict) else None
        return noted if isinstance(noted, dict) else {}

    @property
    def notice_kind(self) -> str:
        return _notice(self.message).kind

    @property
    def notice_icon(self) -> str:
        return _notice(self.message).icon

    @property
    def notice_title(self) -> str:
        return _notice(self.message).title

    @property
    def is_changes(self) -> bool:
        """Whether it says how many files a turn changed."""
        content = self.message.content
        return (
            self.message.role == MessageRole.SYSTEM
            and isinstance(content, dict)
            and content.get("kind") == CHANGES
        )

    @property
    def template(self) -> str:
        if self.is_changes:
            return "agents/messages/_changes.html"
        is_notice = self.message.role == MessageRole.SYSTEM
        if is_notice and self.notice_kind == "divider":
            return "agents/messages/_divider.html"
        return _TEMPLATES.get(self.message.role, "agents/messages/_message.html")


@dataclass(frozen=True, slots=True)
class _Notice:
    kind: str
    icon: str
    title: str


_NOTICES = {
    "error": _Notice("error", "circle-alert", "The turn failed"),
    "interrupted": _Notice("error", "power", "The turn was cut off"),
    "stopped": _Notice("info", "circle-stop", "Stopped"),
    "step_failed": _Notice("info", "triangle-alert", "A step failed"),
    "budget": _Notice("info", "wallet", "The budget is nearly used up"),
    "budget_used_up": _Notice("info", "wallet", "The budget is used up"),
    "unpriced": _Notice("info", "wallet", "A price is unknown"),
    "fallback": _Notice("info", "route", "Another model answers"),
    "mode": _Notice("info", "route", "Another mode"),
    "retry": _Notice("retry", "refresh-cw", "Trying again"),
    "stalled": _Notice("stalled", "hourglass", "No word from the model"),
    "denied": _Notice("info", "shield-x", "Denied"),
    "compacting": _Notice("info", "minimize-2", "Summarising"),
    "compacted": _Notice("info", "minimize-2", "Summarised"),
    "not_compacted": _Notice("info", "minimize-2", "Not summarised"),
    "cleared": _Notice("divider", "sparkles", "The model starts afresh here"),
}
_PLAIN_NOTICE = _Notice("info", "info", "Note")


def _notice(message: Message) -> _Notice:
    """How a system message looks; its content may bring a title of its own."""
    content = message.content if isinstance(message.content, dict) else {}
    notice = _NOTICES.get(str(content.get("kind")), _PLAIN_NOTICE)
    title = content.get("title")
    return replace(notice, title=title) if isinstance(title, str) and title else notice


def element_id(message: Message) -> str:
    noun = "tool" if message.role == MessageRole.TOOL_CALL else "message"
    return dom_id(noun, message.pk)


def text_id(message_id: UUID) -> str:
    return dom_id("message", message_id, "text")
