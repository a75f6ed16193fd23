"""What the model holds of a conversation: how much, summarised, or forgotten.

`compact` has the model summarise what was said and go on from that. `clear` lets it
begin with nothing, on a branch of its own, so that what the page shows from before can
still be edited with the memory that belongs to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agents.errors import InvalidInputError, RunActiveError
from agents.events.bus import publish_on_commit
from agents.events.vocabulary import Compacted, ContextCleared, ContextUpdated
from agents.models import AgentSession, Message, MessageBranch, Run, User
from agents.models.capability import CapabilitySource
from agents.models.messages import MessageRole
from agents.models.runs import RunKind
from agents.rendering.figures import round_tokens

from . import audit, notices, runs
from .blocks import add_message
from .capability import capability_of
from .locks import lock_open_session, lock_run
from .transcripts import has_transcript

CLEARED = "It knows nothing of what stands above; the page keeps that."
NOTHING_TO_COMPACT = "There is no conversation to summarise yet."
NOTHING_TO_CLEAR = "There is nothing that the model could forget."


@dataclass(frozen=True, slots=True)
class Window:
    """How many tokens a model can hold; `is_known` is False for a guess."""

    tokens: int
    is_known: bool = True


def window_of(model: str) -> Window:
    """As far as anybody has said; one query."""
    capability = capability_of(model)
    source = capability.sources["context_window"]
    is_known = source != CapabilitySource.UNVERIFIED
    return Window(capability.context_window, is_known=is_known)


@transaction.atomic
def record_context(run: Run, tokens: int, model: str) -> None:
    """Note what the last call of a turn held; silent where nothing changed.

    Raises: LeaseLostError.
    """
    lock_run(run)
    branch = MessageBranch.objects.filter(pk=run.branch_id)
    if branch.exclude(context_tokens__isnull=False, context_tokens=tokens).update(
        context_tokens=tokens
    ):
        _publish_context(run.session_id, run.branch_id, tokens, model)


def _publish_context(
    session_id: UUID, branch_id: UUID, tokens: int, model: str
) -> None:
    publish_on_commit(
        ContextUpdated(
            session_id=session_id,
            branch_id=branch_id,
            tokens=tokens,
            window_tokens=window_of(model).tokens,
        )
    )


@transaction.atomic
def compact(session: AgentSession) -> Message:
    """Have the model summarise the conversation, now or when its turn has ended.

    The row that says so is the run's trigger; it tells of the result in the end.

    Raises: InvalidInputError when there is nothing to summarise; SessionClosedError.
    """
    session = lock_open_session(session.pk)
    branch = session.active_branch
    assert branch is not None, "made with its main branch"
    is_busy = session.runs.unfinished().exists()
    if not is_busy and not _has_memory(branch):
        raise InvalidInputError(NOTHING_TO_COMPACT)
    waiting = session.messages.queued().filter(content__kind="compacting").first()
    if waiting is not None:
        return waiting
    message = add_message(
        session.pk,
        branch_id=branch.pk,
        role=MessageRole.SYSTEM,
        text=notices.COMPACTING,
        content={"kind": "compacting"},
        queued_at=timezone.now() if is_busy else None,
    )
    if is_busy:
        runs.publish_queue(session.pk)
    else:
        runs.start_run(message, kind=RunKind.COMPACT)
    return message


def _has_memory(branch: MessageBranch) -> bool:
    return branch.sdk_fork_uuid is not None or has_transcript(branch.sdk_session_id)


@transaction.atomic
def record_compaction(
    run: Run, *, trigger: str, pre_tokens: int, post_tokens: int, model: str
) -> None:
    """The model goes on from a summary: say so where it happened.

    Raises: LeaseLostError when the run ended or another worker has it.
    """
    text = _compaction_sentence(trigger, pre_tokens, post_tokens)
    facts = {"trigger": trigger, "pre_tokens": pre_tokens, "post_tokens": post_tokens}
    if run.kind == RunKind.COMPACT:
        message_id = run.trigger_message_id
        notices.update_notice(message_id, text, kind="compacted", **facts)
    else:
        message_id = notices.add_notice(run, "compacted", text, **facts).pk
    MessageBranch.objects.filter(pk=run.branch_id).update(context_tokens=post_tokens)
    publish_on_commit(
        Compacted(
            session_id=run.session_id,
            run_id=run.pk,
            message_id=message_id,
            branch_id=run.branch_id,
            trigger=trigger,
            pre_tokens=pre_tokens,
            post_tokens=post_tokens,
        )
    )
    _publish_context(run.session_id, run.branch_id, post_tokens, model)


def _compaction_sentence(trigger: str, pre_tokens: int, post_tokens: int) -> str:
    why = "" if trigger == "manual" else "It had become too long for the model. "
    return (
        f"{why}The conversation was summarised:"
        f" {round_tokens(pre_tokens)} → {round_tokens(post_tokens)} tokens. The"
        " model goes on from the summary; the page keeps everything."
    )


@transaction.atomic
def clear(session: AgentSession, user: User) -> Message:
    """Let the model forget; the page keeps what it shows.

    Raises: RunActiveError while the agent works; InvalidInputError when it remembers
        nothing anyway; SessionClosedError.
    """
    session = lock_open_session(session.pk)
    branch = session.active_branch
    assert branch is not None, "made with its main branch"
    if session.runs.unfinished().exists():
        raise RunActiveError("The agent is at work. Stop it first, or wait.")
    if not _has_memory(branch):
        raise InvalidInputError(NOTHING_TO_CLEAR)
    divider = _begin_afresh(session, branch)
    audit.record("session.cleared", actor=user, target=session)
    publish_on_commit(
        ContextCleared(
            session_id=session.pk, branch_id=divider.branch_id, message_id=divider.pk
        )
    )
    return divider


def _begin_afresh(session: AgentSession, branch: MessageBranch) -> Message:
    """A branch that replaces nothing, without memory; it begins with the divider."""
    end = add_message(
        session.pk,
        branch_id=branch.pk,
        role=MessageRole.SYSTEM,
        content={"kind": "end"},
        hidden=True,
    )
    fresh = MessageBranch.objects.create(
        session=session, parent_branch=branch, fork_point_message=end, context_tokens=0
    )
    AgentSession.objects.filter(pk=session.pk).update(active_branch=fresh)
    session.messages.queued().filter(branch=branch).update(branch=fresh)
    return add_message(
        session.pk,
        branch_id=fresh.pk,
        role=MessageRole.SYSTEM,
        text=CLEARED,
        content={"kind": "cleared"},
    )
