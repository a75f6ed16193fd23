"""Prompt composition: the system prompt's parts, and what a turn says to the model."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import Any

from agents.domain import approvals, releases
from agents.domain.model_choice import get_session_model
from agents.domain.queries.branches import lineage, within
from agents.domain.transcripts import has_entry
from agents.models import AgentSession, ApprovalRequest, Message, Mode, Run
from agents.models.approvals import ApprovalStatus
from agents.models.messages import MessageQuerySet, MessageRole
from agents.models.runs import RunKind

from .prompt_context import build_connected_tools_context

PromptContent = str | list[dict[str, Any]]

RESUMED = (
    "The server was restarted while you waited for a decision about a tool call. The"
    " decision has come in:"
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
    return Mode.objects.visible_to(session.owner).filter(slug=session.mode).first()


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
    message = run.trigger_message
    is_resuming = run.kind == RunKind.RESUME
    text = _decisions(run) if is_resuming else message.text
    text = "\n\n".join([*_unheard(run, itself=is_resuming), text])
    images = [] if is_resuming else message.attachments.get("images") or []
    if not images:
        return text
    return [
        *({"type": "image", "source": _source(image)} for image in images),
        {"type": "text", "text": text},
    ]


def _unheard(run: Run, *, itself: bool) -> list[str]:
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
    return [message.text for message in unheard if not message.hidden][::-1]


def _forgotten_up_to(shown: MessageQuerySet) -> int:
    """Where the model was last told to begin with nothing; 0 if it never was."""
    dividers = shown.filter(role=MessageRole.SYSTEM, content__kind="cleared")
    return dividers.order_by("-seq").values_list("seq", flat=True).first() or 0


def _is_heard(run: Run, message: Message) -> bool:
    prompt_id = message.sdk_uuid
    return prompt_id is not None and has_entry(run.branch.sdk_session_id, prompt_id)


def _decisions(run: Run) -> str:
    decided = approvals.undelivered_decisions(run)
    return _resume_prompt(decided) if decided else NOT_DECIDED


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


def requested_model(run: Run) -> str:
    return run.trigger_message.model or get_session_model(run.session)
