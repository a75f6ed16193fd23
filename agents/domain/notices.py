"""Notices: cards in the transcript that say what the engine met on its way."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction

from agents.events.bus import publish_on_commit
from agents.events.vocabulary import Retrying
from agents.models import Message, Run
from agents.models.messages import MessageRole
from agents.rendering.text import clean_json, clean_text

from .blocks import add_message, publish_saved
from .locks import lock_session
from .model_choice import is_same_model

COMPACTING = "The conversation is being summarised."
NOT_COMPACTED = "The conversation was not summarised. It is as it was."
RETRY_SENTENCES = {
    "rate_limit": "The provider asks for fewer calls (rate limit).",
    "overloaded": "The provider is overloaded.",
    "server_error": "The provider reports an error of its own.",
    "authentication_failed": "The provider refuses the key.",
}
RETRY_SENTENCE = "The call to the model failed."


def add_notice(run: Run, kind: str, text: str, **facts: Any) -> Message:
    """A card of `kind`: error, retry, stalled, stopped, interrupted or info.

    Raises: LeaseLostError when the run ended or another worker has it.
    """
    return add_message(
        run.session_id,
        branch_id=run.branch_id,
        role=MessageRole.SYSTEM,
        text=text,
        content={"kind": kind, **facts},
        run=run,
        is_error=kind == "error",
    )


def record_fallback(run: Run, actual: str) -> Message | None:
    """Another model answers than was asked for; said once, until that changes.

    Raises: LeaseLostError.
    """
    requested = run.model_requested
    if not requested or is_same_model(requested, actual):
        return None
    before = run.session.runs.exclude(pk=run.pk).exclude(model_actual="").last()
    pair = (requested, actual)
    if before and (before.model_requested, before.model_actual) == pair:
        return None
    text = f"{requested} was asked for, {actual} answers."
    return add_notice(run, "fallback", text, requested=requested, actual=actual)


@transaction.atomic
def update_notice(message_id: UUID, text: str, **facts: Any) -> None:
    """Change a notice in place, such as a retry that goes on counting."""
    message = Message.objects.get(pk=message_id)
    lock_session(message.session_id)
    message.refresh_from_db(fields=["content"])
    message.text = clean_text(text)
    message.content = clean_json({**message.content, **facts})
    message.save(update_fields=["text", "content", "updated_at"])
    publish_saved(message, is_new=False)


@transaction.atomic
def record_retry(
    run: Run,
    notice_id: UUID | None,
    *,
    attempt: int,
    max_retries: int,
    delay_ms: int,
    error_status: int | None,
    error: str,
) -> UUID:
    """A model call failed and is tried again; one notice counts them.

    Returns: the notice's id, for the next retry of the same turn.
    """
    publish_on_commit(
        Retrying(
            session_id=run.session_id,
            run_id=run.pk,
            attempt=attempt,
            max_retries=max_retries,
            delay_ms=delay_ms,
            error_status=error_status,
            error=error,
        )
    )
    sentence = RETRY_SENTENCES.get(error, RETRY_SENTENCE)
    text = (
        f"{sentence} Trying again in {max(1, round(delay_ms / 1000))} s"
        f" (try {attempt} of {max_retries})."
    )
    facts = {"attempt": attempt, "status": error_status, "error": error}
    if notice_id is None:
        return add_notice(run, "retry", text, **facts).pk
    update_notice(notice_id, text, **facts)
    return notice_id


@transaction.atomic
def end_retries(notice_id: UUID, *, has_helped: bool) -> None:
    """The notice says what was, not what comes next."""
    content = Message.objects.values_list("content", flat=True).get(pk=notice_id)
    attempts = content["attempt"]
    tries = f"{attempts} more {'try' if attempts == 1 else 'tries'}"
    verb = "It went on after" if has_helped else "That did not change in"
    sentence = RETRY_SENTENCES.get(content["error"], RETRY_SENTENCE)
    update_notice(notice_id, f"{sentence} {verb} {tries}.", kind="info")
