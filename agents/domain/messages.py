"""Messages that people send: delivered at once, or queued behind a running turn."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from agents.errors import InvalidInputError
from agents.models import AgentSession, Message, User
from agents.models.messages import MessageRole
from agents.models.runs import RunKind
from agents.rendering.text import clean_json, clean_text

from . import runs
from .blocks import add_message
from .locks import lock_session

MAX_PROMPT_CHARACTERS = 1_000_000


@transaction.atomic
def send_message(
    session: AgentSession,
    *,
    author: User,
    text: str,
    client_message_id: UUID | None = None,
    attachments: dict[str, Any] | None = None,
) -> Message:
    """Write a person's message and start a run for it, or queue it behind one.

    Idempotent by `client_message_id`: a second call returns the first message.

    Raises: InvalidInputError when there is nothing to send.
    """
    text = clean_prompt(text)
    session = lock_session(session.pk)
    assert session.active_branch_id is not None, "made with its main branch"
    if client_message_id is not None:
        sent = session.messages.filter(client_message_id=client_message_id).first()
        if sent is not None:
            return sent
    is_busy = session.runs.unfinished().exists()
    message = add_message(
        session.pk,
        branch_id=session.active_branch_id,
        role=MessageRole.USER,
        text=text,
        author=author,
        client_message_id=client_message_id,
        attachments=clean_json(attachments or {}),
        queued_at=timezone.now() if is_busy else None,
    )
    if session.queue_paused or session.closed_at:
        AgentSession.objects.filter(pk=session.pk).update(
            queue_paused=False, closed_at=None
        )
    if is_busy:
        runs.publish_queue(session.pk)
    else:
        runs.start_run(message, kind=RunKind.PROMPT)
    return message


def clean_prompt(text: str) -> str:
    cleaned = clean_text(text.replace("\r\n", "\n")).strip()
    if not cleaned:
        raise InvalidInputError("Write a message first.", field="text")
    if len(cleaned) > MAX_PROMPT_CHARACTERS:
        raise InvalidInputError(
            f"A message can have {MAX_PROMPT_CHARACTERS:,} characters;"
            f" this one has {len(cleaned):,}.",
            field="text",
        )
    return cleaned


@transaction.atomic
def remove_queued_message(message: Message) -> bool:
    """Take a message out of the queue. Returns: False if it is already delivered."""
    lock_session(message.session_id)
    deleted, _ = (
        Message.objects.filter(pk=message.pk, delivered_at=None)
        .exclude(queued_at=None)
        .delete()
    )
    if deleted:
        AgentSession.objects.filter(pk=message.session_id).update(
            message_count=F("message_count") - 1
        )
        runs.publish_queue(message.session_id)
    return bool(deleted)
