"""Blocks: the message rows that a turn is made of, written as they happen.

Every function that writes publishes its event in the same transaction. Those that
write for a run raise `LeaseLostError` once the run ended or another worker has it, so
that a slow worker leaves nothing behind in a turn that is over.
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
from agents.models.fields import fitting
from agents.models.messages import MessageRole, ToolOutcome
from agents.policy.tools import SUB_AGENT_TOOLS
from agents.rendering.markdown import render_markdown
from agents.rendering.text import clean_json, clean_text, preview

from .attachments import with_summary
from .locks import lock_run, lock_session
from .status import PREVIEW_CHARACTERS, refresh_sub_agents


def add_message(
    session_id: UUID,
    *,
    branch_id: UUID,
    role: MessageRole,
    text: str = "",
    content: dict[str, Any] | None = None,
    run: Run | None = None,
    **fields: Any,
) -> Message:
    """Append a finished message to the branch."""
    text = clean_text(text)
    html = _render(role, text)  # may take 100 ms, so before the transaction
    with transaction.atomic():
        if run is not None:
            lock_run(run)
        return _append(
            session_id,
            branch_id=branch_id,
            role=role,
            text=text,
            rendered_html=html,
            content=content or {},
            run=run,
            **fields,
        )


def _append(
    session_id: UUID, *, role: MessageRole, content: dict[str, Any], **columns: Any
) -> Message:
    shown = "" if columns.get("hidden") else columns.get("text", "")
    content = with_summary(content, columns.get("attachments") or {})
    message = Message.objects.create(
        session_id=session_id,
        seq=next_message_seq(session_id, **_tally(role, shown)),
        role=role,
        content=clean_json(content),
        **fitting(Message, **columns),
    )
    publish_saved(message, is_new=True)
    return message


def next_message_seq(session_id: UUID, **changes: Any) -> int:
    """Hand out the next place in the transcript; `changes` go into the same update."""
    sessions = AgentSession.objects.filter(pk=session_id)
    sessions.update(
        last_message_seq=F("last_message_seq") + 1,
        updated_at=timezone.now(),
        **changes,
    )
    return sessions.values_list("last_message_seq", flat=True).get()


def _render(role: str, text: str) -> str:
    return render_markdown(text) if role == MessageRole.ASSISTANT and text else ""


def _tally(role: str, text: str) -> dict[str, Any]:
    """What a finished message changes in its session's cached totals."""
    changes: dict[str, Any] = {"message_count": F("message_count") + 1}
    if role in (MessageRole.USER, MessageRole.ASSISTANT) and text.strip():
        changes["last_preview"] = preview(text, PREVIEW_CHARACTERS)
    return changes


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
    lock_run(run)
    return _begin(run, role=role, **fields)


def _begin(run: Run, *, role: MessageRole, **columns: Any) -> Message:
    message = Message.objects.create(
        session_id=run.session_id,
        branch_id=run.branch_id,
        run=run,
        seq=next_message_seq(run.session_id),
        role=role,
        is_streaming=True,
        **fitting(Message, **columns),
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
        text=clean_text(text), updated_at=timezone.now()
    )


def finish_stream(
    message_id: UUID,
    *,
    text: str | None = None,
    content: dict[str, Any] | None = None,
    is_interrupted: bool = False,
    **fields: Any,
) -> None:
    """End a streamed block with its final text (None keeps what is stored).

    A block that has ended already stays as it is.
    """
    message = Message.objects.defer("text", "rendered_html").get(pk=message_id)
    changes = fitting(Message, **fields)
    if text is not None:
        changes |= _texts(message.role, text)
    if content is not None:
        changes["content"] = clean_json(content)
    with transaction.atomic():
        lock_session(message.session_id)
        if text is None:
            stored = Message.objects.values_list("text", flat=True).get(pk=message_id)
            changes |= _texts(message.role, stored)
        _end_stream(message, is_interrupted=is_interrupted, **changes)


def _texts(role: str, text: str) -> dict[str, str]:
    text = clean_text(text)
    return {"text": text, "rendered_html": _render(role, text)}


def _end_stream(message: Message, *, text: str, **changes: Any) -> None:
    now = timezone.now()
    ended = Message.objects.filter(pk=message.pk, is_streaming=True).update(
        is_streaming=False, text=text, updated_at=now, **changes
    )
    if not ended:
        return
    AgentSession.objects.filter(pk=message.session_id).update(
        updated_at=now, **_tally(message.role, text)
    )
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
    lock_run(run)
    known = _tool_row(run, tool_use_id, MessageRole.TOOL_CALL)
    if known is not None:
        return known
    return _begin(
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
    lock_run(run)
    return _write_call(
        run,
        tool_use_id=tool_use_id,
        tool_name=tool_name,
        tool_input=tool_input,
        parent_tool_use_id=parent_tool_use_id,
    )


@transaction.atomic
def record_edit(
    run: Run,
    *,
    tool_use_id: str,
    tool_name: str,
    tool_input: dict[str, Any],
    original: dict[str, Any],
    edited_by: str,
) -> None:
    """The call runs with `tool_input`, which a person put in place of the model's.

    From then on the row is about what runs; the model's own stays beside it.
    """
    lock_run(run)
    _write_call(
        run,
        tool_use_id=tool_use_id,
        tool_name=tool_name,
        tool_input=tool_input,
        edit={"original_input": original, "edited_by": edited_by},
    )


def _write_call(
    run: Run,
    *,
    tool_use_id: str,
    tool_input: dict[str, Any],
    edit: dict[str, Any] | None = None,
    **names: str,
) -> Message:
    message = _tool_row(run, tool_use_id, MessageRole.TOOL_CALL)
    content = {"input": tool_input, **(edit or {})}
    if message is None:
        return _append(
            run.session_id,
            branch_id=run.branch_id,
            role=MessageRole.TOOL_CALL,
            content=content,
            run=run,
            tool_use_id=tool_use_id,
            **names,
        )
    was_streaming = message.is_streaming
    if edit is None and "original_input" in message.content:
        content = {}  # the CLI brings the model's input again, which did not run
    has_changed = _change(
        message,
        content=clean_json({**message.content, **content}),
        text="",  # the input as it streamed in; now it stands in `content`
        is_streaming=False,
        **fitting(Message, **{name: value for name, value in names.items() if value}),
    )
    if was_streaming:
        AgentSession.objects.filter(pk=run.session_id).update(
            **_tally(MessageRole.TOOL_CALL, "")
        )
    if has_changed:
        publish_saved(message, is_new=False)
    return message


def _change(message: Message, **columns: Any) -> bool:
    """Store what differs. Returns: False if nothing did, so nobody needs to hear."""
    changed = [
        name for name, value in columns.items() if getattr(message, name) != value
    ]
    for name in changed:
        setattr(message, name, columns[name])
    if changed:
        message.save(update_fields=[*changed, "updated_at"])
    return bool(changed)


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
    lock_run(run)
    message = _write_result(
        run,
        tool_use_id=tool_use_id,
        outcome=outcome,
        text=clean_text(text),
        content=content or {},
        elapsed_ms=elapsed_ms,
        parent_tool_use_id=parent_tool_use_id,
    )
    if message.tool_name in SUB_AGENT_TOOLS:
        refresh_sub_agents(run.session_id)
    return message


def _write_result(
    run: Run,
    *,
    tool_use_id: str,
    outcome: ToolOutcome,
    text: str = "",
    content: dict[str, Any] | None = None,
    elapsed_ms: int | None = None,
    parent_tool_use_id: str = "",
) -> Message:
    message = _tool_row(run, tool_use_id, MessageRole.TOOL_RESULT)
    if message is None:
        call = _tool_row(run, tool_use_id, MessageRole.TOOL_CALL)
        if call is not None:
            parent_tool_use_id = parent_tool_use_id or call.parent_tool_use_id
        return _append(
            run.session_id,
            branch_id=run.branch_id,
            role=MessageRole.TOOL_RESULT,
            text=text,
            content=content or {},
            run=run,
            tool_use_id=tool_use_id,
            tool_name=call.tool_name if call else "",
            parent_tool_use_id=parent_tool_use_id,
            outcome=outcome,
            is_error=outcome != ToolOutcome.OK,
            elapsed_ms=elapsed_ms,
        )
    if message.outcome == ToolOutcome.DENIED:  # the CLI reports denials as errors
        outcome = ToolOutcome.DENIED
    has_changed = _change(
        message,
        text=text or message.text,
        content=clean_json({**message.content, **(content or {})}),
        elapsed_ms=message.elapsed_ms if elapsed_ms is None else elapsed_ms,
        outcome=outcome,
        is_error=outcome != ToolOutcome.OK,
    )
    if has_changed:
        publish_saved(message, is_new=False)
    return message


def note_on_result(run: Run, *, tool_use_id: str, **facts: Any) -> None:
    """Add to the content of a call's result; the caller holds the session's lock."""
    message = _tool_row(run, tool_use_id, MessageRole.TOOL_RESULT)
    if message is None:
        return
    if _change(message, content=clean_json({**message.content, **facts})):
        publish_saved(message, is_new=False)


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
    lock_run(run)
    _write_call(
        run, tool_use_id=tool_use_id, tool_name=tool_name, tool_input=tool_input
    )
    write_denial(run, tool_use_id=tool_use_id, tool_name=tool_name, reason=reason)


def write_denial(run: Run, *, tool_use_id: str, tool_name: str, reason: str) -> None:
    """The result row of a refused call; the caller holds the session's lock."""
    known = _tool_row(run, tool_use_id, MessageRole.TOOL_RESULT)
    if known is not None and known.outcome == ToolOutcome.DENIED:
        return
    reason = clean_text(reason)
    _write_result(run, tool_use_id=tool_use_id, outcome=ToolOutcome.DENIED, text=reason)
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
        role=role,
        **fitting(Message, tool_use_id=tool_use_id),
    ).first()


@transaction.atomic
def close_open_blocks(run: Run, *, keep: Sequence[str] = ()) -> None:
    """End what a stopped run left open: half texts and calls without a result.

    The calls whose tool_use_id is in `keep` still wait for a person. The caller holds
    the session's lock and ends the run in the same transaction.
    """
    open_rows = Message.objects.filter(run=run, is_streaming=True)
    for message_id in list(open_rows.values_list("pk", flat=True)):
        finish_stream(message_id, is_interrupted=True)
    for tool_use_id in _unanswered_calls(run):
        if tool_use_id not in keep:
            _write_result(run, tool_use_id=tool_use_id, outcome=ToolOutcome.CANCELLED)


def _unanswered_calls(run: Run) -> list[str]:
    rows = Message.objects.filter(run=run).exclude(tool_use_id="")
    answered = rows.filter(role=MessageRole.TOOL_RESULT).values("tool_use_id")
    calls = rows.filter(role=MessageRole.TOOL_CALL)
    return list(
        calls.exclude(tool_use_id__in=answered).values_list("tool_use_id", flat=True)
    )
