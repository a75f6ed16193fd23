"""Blocks: the message rows that a turn is made of, written as they happen.

Every function that writes publishes its event in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from agents.events.bus import publish_on_commit
from agents.events.vocabulary import (
    MessageSaved,
    StreamEnded,
    StreamStarted,
    ToolDenied,
)
from agents.models import AgentSession, Message, Run
from agents.models.messages import MessageRole, ToolOutcome
from agents.rendering.markdown import render_markdown
from agents.rendering.text import clean_json, clean_text, preview

PREVIEW_CHARACTERS = 120


def lock_session(session_id: UUID) -> AgentSession:
    """Serialise writers of one session until the transaction ends."""
    return AgentSession.objects.select_for_update().get(pk=session_id)


@transaction.atomic
def add_message(
    session_id: UUID,
    *,
    branch_id: UUID,
    role: MessageRole,
    text: str = "",
    content: dict[str, Any] | None = None,
    **fields: Any,
) -> Message:
    """Append a finished message to the branch."""
    text = clean_text(text)
    message = Message.objects.create(
        session_id=session_id,
        branch_id=branch_id,
        seq=next_message_seq(session_id),
        role=role,
        text=text,
        content=clean_json(content or {}),
        rendered_html=_render(role, text),
        **fields,
    )
    _touch(session_id, role, text)
    publish_saved(message, is_new=True)
    return message


def next_message_seq(session_id: UUID) -> int:
    sessions = AgentSession.objects.filter(pk=session_id)
    sessions.update(
        last_message_seq=F("last_message_seq") + 1, updated_at=timezone.now()
    )
    return sessions.values_list("last_message_seq", flat=True).get()


def _render(role: str, text: str) -> str:
    return render_markdown(text) if role == MessageRole.ASSISTANT and text else ""


def _touch(session_id: UUID, role: str, text: str) -> None:
    changes: dict[str, Any] = {"message_count": F("message_count") + 1}
    if role in (MessageRole.USER, MessageRole.ASSISTANT) and text.strip():
        changes["last_preview"] = preview(text, PREVIEW_CHARACTERS)
    AgentSession.objects.filter(pk=session_id).update(**changes)


def publish_saved(message: Message, *, is_new: bool) -> None:
    publish_on_commit(
        MessageSaved(
            session_id=message.session_id,
            message_id=message.pk,
            branch_id=message.branch_id,
            role=message.role,
            tool_use_id=message.tool_use_id,
            is_new=is_new,
        )
    )


@transaction.atomic
def start_stream(run: Run, *, role: MessageRole, **fields: Any) -> Message:
    """A block that is being written right now; its text arrives by `save_stream`."""
    message = Message.objects.create(
        session_id=run.session_id,
        branch_id=run.branch_id,
        run=run,
        seq=next_message_seq(run.session_id),
        role=role,
        is_streaming=True,
        **fields,
    )
    publish_on_commit(
        StreamStarted(
            session_id=run.session_id,
            message_id=message.pk,
            branch_id=run.branch_id,
            role=role,
            tool_name=message.tool_name,
        )
    )
    return message


def save_stream(message_id: UUID, text: str) -> None:
    """Store the text so far; silent, since the deltas already told it."""
    Message.objects.filter(pk=message_id, is_streaming=True).update(
        text=text, updated_at=timezone.now()
    )


@transaction.atomic
def finish_stream(
    message_id: UUID,
    *,
    text: str | None = None,
    content: dict[str, Any] | None = None,
    is_interrupted: bool = False,
    **fields: Any,
) -> None:
    """End a streamed block with its final text (None keeps what is stored)."""
    message = Message.objects.select_for_update().get(pk=message_id)
    if text is not None:
        message.text = clean_text(text)
    if content is not None:
        message.content = clean_json(content)
    for name, value in fields.items():
        setattr(message, name, value)
    message.is_streaming = False
    message.is_interrupted = is_interrupted
    message.rendered_html = _render(message.role, message.text)
    message.save()
    _touch(message.session_id, message.role, message.text)
    publish_on_commit(
        StreamEnded(
            session_id=message.session_id,
            message_id=message.pk,
            branch_id=message.branch_id,
        )
    )


@transaction.atomic
def start_tool_call(run: Run, *, tool_use_id: str, tool_name: str) -> Message:
    """The model begins to write a call; finds the row if the hook made it already."""
    lock_session(run.session_id)
    known = _tool_row(run, tool_use_id, MessageRole.TOOL_CALL)
    if known is not None:
        return known
    return start_stream(
        run,
        role=MessageRole.TOOL_CALL,
        tool_use_id=tool_use_id,
        tool_name=tool_name,
        content={"input": {}},
    )


@transaction.atomic
def record_tool_call(
    run: Run,
    *,
    tool_use_id: str,
    tool_name: str,
    tool_input: dict[str, Any],
    parent_tool_use_id: str = "",
) -> Message:
    """The tool_call row of `tool_use_id`; made here if the hook came first.

    A sub-agent's hook comes before its message, and the CLI starts tools while the
    message still streams, so whoever is first makes the row and the others fill it.
    """
    lock_session(run.session_id)
    message = _tool_row(run, tool_use_id, MessageRole.TOOL_CALL)
    if message is None:
        return add_message(
            run.session_id,
            branch_id=run.branch_id,
            role=MessageRole.TOOL_CALL,
            content={"input": tool_input},
            run=run,
            tool_use_id=tool_use_id,
            tool_name=tool_name,
            parent_tool_use_id=parent_tool_use_id,
        )
    message.tool_name = tool_name
    message.parent_tool_use_id = parent_tool_use_id or message.parent_tool_use_id
    message.content = clean_json({**message.content, "input": tool_input})
    message.text = ""  # the input as it streamed in; now it stands in `content`
    was_streaming, message.is_streaming = message.is_streaming, False
    message.save()
    if was_streaming:
        _touch(run.session_id, message.role, "")
    publish_saved(message, is_new=False)
    return message


@transaction.atomic
def record_tool_result(
    run: Run,
    *,
    tool_use_id: str,
    outcome: ToolOutcome,
    text: str = "",
    content: dict[str, Any] | None = None,
    elapsed_ms: int | None = None,
    parent_tool_use_id: str = "",
) -> Message:
    """The one tool_result row of `tool_use_id`; later calls fill what is missing."""
    lock_session(run.session_id)
    call = _tool_row(run, tool_use_id, MessageRole.TOOL_CALL)
    message = _tool_row(run, tool_use_id, MessageRole.TOOL_RESULT)
    if message is None:
        return add_message(
            run.session_id,
            branch_id=run.branch_id,
            role=MessageRole.TOOL_RESULT,
            text=text,
            content=content,
            run=run,
            tool_use_id=tool_use_id,
            tool_name=call.tool_name if call else "",
            parent_tool_use_id=parent_tool_use_id
            or (call.parent_tool_use_id if call else ""),
            outcome=outcome,
            is_error=outcome != ToolOutcome.OK,
            elapsed_ms=elapsed_ms,
        )
    message.text = clean_text(text) or message.text
    message.content = clean_json({**message.content, **(content or {})})
    message.elapsed_ms = elapsed_ms if elapsed_ms is not None else message.elapsed_ms
    if message.outcome != ToolOutcome.DENIED:  # the CLI reports denials as errors
        message.outcome = outcome
        message.is_error = outcome != ToolOutcome.OK
    message.save()
    publish_saved(message, is_new=False)
    return message


@transaction.atomic
def record_denial(
    run: Run,
    *,
    tool_use_id: str,
    tool_name: str,
    tool_input: dict[str, Any],
    reason: str,
) -> None:
    """The call was refused, by policy or by a person; `reason` is what the model sees.

    Recording it again changes nothing.
    """
    record_tool_call(
        run, tool_use_id=tool_use_id, tool_name=tool_name, tool_input=tool_input
    )
    known = _tool_row(run, tool_use_id, MessageRole.TOOL_RESULT)
    if known is not None and known.outcome == ToolOutcome.DENIED:
        return
    record_tool_result(
        run, tool_use_id=tool_use_id, outcome=ToolOutcome.DENIED, text=reason
    )
    publish_on_commit(
        ToolDenied(
            session_id=run.session_id,
            tool_use_id=tool_use_id,
            tool_name=tool_name,
            reason=reason,
        )
    )


def _tool_row(run: Run, tool_use_id: str, role: MessageRole) -> Message | None:
    return Message.objects.filter(
        session_id=run.session_id,
        branch_id=run.branch_id,
        tool_use_id=tool_use_id,
        role=role,
    ).first()


@transaction.atomic
def close_open_blocks(run: Run, *, keep: Sequence[str] = ()) -> None:
    """End what a stopped run left open: half texts and calls without a result.

    The calls whose tool_use_id is in `keep` still wait for a person.
    """
    open_rows = Message.objects.filter(run=run, is_streaming=True)
    for message_id in list(open_rows.values_list("pk", flat=True)):
        finish_stream(message_id, is_interrupted=True)
    for tool_use_id in _unanswered_calls(run):
        if tool_use_id in keep:
            continue
        record_tool_result(run, tool_use_id=tool_use_id, outcome=ToolOutcome.CANCELLED)


def _unanswered_calls(run: Run) -> list[str]:
    rows = Message.objects.filter(run=run).exclude(tool_use_id="")
    answered = rows.filter(role=MessageRole.TOOL_RESULT).values("tool_use_id")
    calls = rows.filter(role=MessageRole.TOOL_CALL)
    return list(
        calls.exclude(tool_use_id__in=answered).values_list("tool_use_id", flat=True)
    )
