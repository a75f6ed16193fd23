"""Messages that people send: delivered at once, or queued behind a running turn."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from agents.errors import InvalidInputError, SessionClosedError
from agents.models import AgentSession, Message, User
from agents.models.messages import MessageRole
from agents.models.runs import RunKind
from agents.rendering.text import clean_json, clean_text, is_blank

from . import analytics, runs
from .attachments import with_command, with_summary
from .blocks import add_message
from .locks import check_is_no_sub_agent, lock_open_session, lock_session
from .model_choice import check_model
from .providers import provider_for

MAX_PROMPT_CHARACTERS = 1_000_000


@transaction.atomic
def send_message(
    session: AgentSession,
    *,
    author: User,
    text: str,
    client_message_id: UUID | None = None,
    attachments: dict[str, Any] | None = None,
    model: str = "",
) -> Message:
    """Write a person's message and start a run for it, or queue it behind others.

    Where its text begins with the name of a skill of theirs, “/name”, that is attached.

    It is also the word that a paused queue waits for, which is delivered in its order.

    Idempotent by `client_message_id`: a second call returns the first message.

    Args:
        model: for this message's turn only, before any other choice of a model.

    Raises: InvalidInputError when there is nothing to send, or for a model that may
        not be used; SessionClosedError, SubAgentError.
    """
    text, model = clean_prompt(text), clean_text(model).strip()
    if model:
        check_model(model, provider_for(session), *{session.owner, author})
    session = lock_session(session.pk)
    check_is_no_sub_agent(session)
    assert session.active_branch_id is not None, "made with its main branch"
    if client_message_id is not None:
        sent = session.messages.filter(client_message_id=client_message_id).first()
        if sent is not None:
            return sent
    if session.closed_at is not None:
        raise SessionClosedError
    is_busy = session.runs.unfinished().exists()
    waits = is_busy or session.messages.queued().exists()
    message = add_message(
        session.pk,
        branch_id=session.active_branch_id,
        role=MessageRole.USER,
        text=text,
        author=author,
        client_message_id=client_message_id,
        attachments=clean_json(with_command(author, text, attachments or {})),
        model=model,
        queued_at=timezone.now() if waits else None,
    )
    if session.queue_paused:
        AgentSession.objects.filter(pk=session.pk).update(queue_paused=False)
    analytics.message_sent(session, message)
    if not waits:
        runs.start_run(message, kind=RunKind.PROMPT)
        return message
    runs.publish_queue(session.pk)
    runs.deliver_next_message(session.pk)
    message.refresh_from_db()
    return message


def clean_prompt(text: str) -> str:
    cleaned = clean_text(text.replace("\r\n", "\n")).strip()
    if is_blank(cleaned):
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
    deleted, _ = _queued(message).delete()
    if deleted:
        AgentSession.objects.filter(pk=message.session_id).update(
            message_count=F("message_count") - 1
        )
        runs.publish_queue(message.session_id)
    return bool(deleted)


@transaction.atomic
def edit_queued_message(message: Message, text: str) -> bool:
    """Change what waits in the queue. Returns: False if it is already delivered.

    Raises: InvalidInputError when nothing is left of it.
    """
    text = clean_prompt(text)
    lock_session(message.session_id)
    queued = _queued(message).filter(role=MessageRole.USER)
    attachments = message.attachments
    if message.author is not None:
        attachments = clean_json(with_command(message.author, text, attachments))
    changed = queued.update(
        text=text,
        attachments=attachments,
        content=with_summary(message.content, attachments),
        updated_at=timezone.now(),
    )
    if changed:
        runs.publish_queue(message.session_id)
    return bool(changed)


@transaction.atomic
def move_queued_message(message: Message, *, steps: int) -> bool:
    """Move a queued message towards the end, or with a negative number to the front.

    Returns: False if it is already delivered.
    """
    session = lock_session(message.session_id)
    places = [each.pk for each in session.messages.queued()]
    if message.pk not in places:
        return False
    at = max(0, places.index(message.pk) + steps)
    places.remove(message.pk)
    places.insert(at, message.pk)
    for position, message_id in enumerate(places, start=1):
        Message.objects.filter(pk=message_id).update(queue_position=position)
    runs.publish_queue(session.pk)
    return True


@transaction.atomic
def send_now(message: Message) -> bool:
    """Deliver a queued message next, stopping the turn that is on.

    Returns: False if it is already delivered.
    Raises: SessionClosedError.
    """
    session = lock_open_session(message.session_id)
    if not _queued(message).update(is_urgent=True):
        return False
    runs.publish_queue(session.pk)
    if not runs.stop_agent(session):
        runs.deliver_next_message(session.pk)
    return True


@transaction.atomic
def resume_queue(session: AgentSession) -> None:
    """A person says that what waits may go on after a stop or an error."""
    lock_session(session.pk)
    AgentSession.objects.filter(pk=session.pk).update(queue_paused=False)
    runs.publish_queue(session.pk)
    runs.deliver_next_message(session.pk)


def _queued(message: Message) -> QuerySet[Message]:
    return Message.objects.filter(pk=message.pk, delivered_at=None).exclude(
        queued_at=None
    )
