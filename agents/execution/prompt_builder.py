"""Prompt composition: the system prompt's parts, and what a turn says to the model."""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path
from typing import Any

from agents.domain import approvals, releases
from agents.domain.attachments import why_unreadable
from agents.domain.mcp_offers import known_tools
from agents.domain.modes import find_kept_mode
from agents.domain.permissions import usable_tools
from agents.domain.queries.branches import lineage, within
from agents.domain.transcripts import has_entry
from agents.models import (
    AgentSession,
    ApprovalRequest,
    McpTool,
    Message,
    Mode,
    Run,
)
from agents.models.approvals import ApprovalKind, ApprovalStatus
from agents.models.messages import MessageQuerySet, MessageRole
from agents.models.runs import RunKind
from agents.policy.tools import find_tool

from .prompt_context import (
    ToolNote,
    build_connected_tools_context,
    resolve_attached_skills,
    resolve_context_paths,
    resolve_forced_tools,
)

PromptContent = str | list[dict[str, Any]]

RESUMED = (
    "The server was restarted while you waited for a decision about a tool call. The"
    " decision has come in:"
)
BUDGET_RAISED = (
    "Continue exactly where you stopped. You were interrupted because a budget was used"
    " up, and it has been raised since. A call that has no result was not finished."
)
NOT_DECIDED = (
    "The server was restarted while you waited for a decision about a tool call, and"
    " nobody decided in time. Go on without that call, or say why you can't."
)


def resolve_mode(session: AgentSession) -> Mode | None:
    """The session's mode; a deleted one adds no instructions and no tools either.

    The tools of the mode stand on the session since it was last resolved, so a
    missing mode never widens it.
    """
    return find_kept_mode(session.owner, session.mode)


def compose_system_prompt(*parts: str) -> str | None:
    """Site default, mode, session and context blocks in this order; None if empty."""
    filled = [part.strip() for part in parts if part.strip()]
    return "\n\n".join(filled) or None


def session_system_prompt(
    session: AgentSession, *, has_tools: bool = True
) -> str | None:
    mode = resolve_mode(session)
    preferences = session.owner.preferences
    return compose_system_prompt(
        preferences.system_prompt,
        mode.system_prompt if mode else "",
        session.system_prompt,
        build_connected_tools_context(session) if has_tools else "",
    )


def build_prompt_content(run: Run) -> PromptContent:
    """What this run says to the model: the message, or the decisions it waited for.

    What people said before that and the model never heard is said again first: a turn
    was stopped before it began, or the server killed before its memory was stored.
    """
    is_resuming = run.kind == RunKind.RESUME
    said = _unheard(run, itself=is_resuming)
    if not is_resuming:
        said.append(run.trigger_message)
    parts = [part for message in said for part in message_parts(run.session, message)]
    if is_resuming:
        parts.append(_decisions(run))
    text = "\n\n".join(parts)
    images = [image for message in said for image in _images(message)]
    if not images:
        return text
    return [
        {"type": "text", "text": text},
        *({"type": "image", "source": _source(image)} for image in images),
    ]


def message_parts(session: AgentSession, message: Message) -> list[str]:
    """Forced tools, context paths, skills, and the words, in this order."""
    attached = message.attachments
    forced = resolve_forced_tools(
        attached.get("forced_tools") or (), lambda: session_tools(session)
    )
    paths = resolve_context_paths(
        attached.get("context_paths") or (),
        Path(session.cwd),
        lambda path: why_unreadable(session.pk, path),
    )
    skills = resolve_attached_skills(attached.get("skills") or ())
    return [part for part in (forced, *paths, *skills) if part] + [message.text]


def session_tools(session: AgentSession) -> list[ToolNote]:
    """What may be forced: the tools that the session offers."""
    foreign = {tool.full_name: tool for tool in known_tools(session)}
    names = sorted(usable_tools(session))
    return [_tool_note(name, foreign.get(name)) for name in names]


def _tool_note(name: str, foreign: McpTool | None) -> ToolNote:
    if foreign is not None:
        server = foreign.server
        return ToolNote(name, foreign.description, server.slug, server.account_email)
    spec = find_tool(name)
    server_name = (spec.server or "") if spec else ""
    return ToolNote(name, spec.summary if spec else "", server_name)


def _images(message: Message) -> list[dict[str, str]]:
    return message.attachments.get("images") or []


def _unheard(run: Run, *, itself: bool) -> list[Message]:
    """What people said since the model last heard them; with the run's own message
    if that may not have arrived either."""
    trigger = run.trigger_message
    until = {"seq__lte": trigger.seq} if itself else {"seq__lt": trigger.seq}
    shown = Message.objects.filter(
        within(lineage(run.session_id, run.branch_id)), **until
    ).filter(session_id=run.session_id)
    said = (
        shown.filter(role=MessageRole.USER, seq__gt=_forgotten_up_to(shown))
        .delivered()
        .order_by("-seq")
    )
    unheard = takewhile(lambda message: not _is_heard(run, message), said.iterator())
    return [message for message in unheard if not message.hidden][::-1]


def _forgotten_up_to(shown: MessageQuerySet) -> int:
    """Where the model was last told to begin with nothing; 0 if it never was."""
    dividers = shown.filter(role=MessageRole.SYSTEM, content__kind="cleared")
    return dividers.order_by("-seq").values_list("seq", flat=True).first() or 0


def _is_heard(run: Run, message: Message) -> bool:
    prompt_id = message.sdk_uuid
    return prompt_id is not None and has_entry(run.branch.sdk_session_id, prompt_id)


def _decisions(run: Run) -> str:
    decided = approvals.undelivered_decisions(run)
    calls = [each for each in decided if each.kind != ApprovalKind.BUDGET]
    parts = [_resume_prompt(calls)] if calls else []
    for raised in decided:
        if raised.kind == ApprovalKind.BUDGET:
            approvals.consume(raised.pk)
            parts[:1] = [BUDGET_RAISED, *parts[:1]]
    return "\n\n".join(parts) or NOT_DECIDED


def _source(image: dict[str, str]) -> dict[str, str]:
    return {
        "type": "base64",
        "media_type": image.get("media_type", "image/png"),
        "data": image["data"],
    }


def _resume_prompt(decided: list[ApprovalRequest]) -> str:
    return "\n\n".join([RESUMED, *(_describe(approval) for approval in decided)])


def _why_denied(approval: ApprovalRequest) -> str:
    if not approval.message:
        return ""
    by_itself = (releases.RULE_CHANNEL, releases.POLICY_CHANNEL)
    who = "Reason" if approval.channel in by_itself else "They said"
    return f" {who}: {approval.message}"


def _describe(approval: ApprovalRequest) -> str:
    tool_input = approval.updated_input or approval.tool_input
    call = f"{approval.tool_name} {json.dumps(tool_input, ensure_ascii=False)}"
    if approval.status == ApprovalStatus.DENIED:
        # Said here, so it is used up; an approval is used by the call itself.
        approvals.consume(approval.pk)
        return f"Denied: do not make this call.{_why_denied(approval)}\ncall: {call}"
    edited = " The user edited its input." if approval.updated_input else ""
    return (
        f"Approved.{edited} Make exactly this call again now, with this input; it is"
        f" allowed once.\ncall: {call}"
    )
