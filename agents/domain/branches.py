"""Branches: another way for a conversation to go on, with true memory.

A branch replaces one message of the person. The model then remembers exactly what the
branch shows: everything before that message, nothing after it.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.errors import InvalidInputError, SessionClosedError
from agents.events.bus import publish_on_commit
from agents.events.vocabulary import BranchCreated, BranchSwitched
from agents.models import AgentSession, Message, MessageBranch, User
from agents.models.messages import MessageRole
from agents.models.runs import RunKind
from agents.rendering.text import clean_json

from . import analytics, runs
from .attachments import with_command
from .blocks import add_message
from .locks import lock_session
from .messages import clean_prompt
from .queries.branches import lineage, within
from .transcripts import has_entry, has_transcript, last_entry_uuid, turn_end_before


@transaction.atomic
def edit_message(
    message: Message,
    *,
    author: User,
    text: str,
    client_message_id: UUID | None = None,
    attachments: dict[str, Any] | None = None,
) -> Message:
    """Say something else in place of an earlier message, on a branch of its own.

    A running turn is stopped first; the new message is then delivered next.
    Attachments are kept unless others are given. Idempotent by `client_message_id`.

    Raises: InvalidInputError for messages that are not a person's;
        SessionClosedError.
    """
    text = clean_prompt(text)
    session = lock_session(message.session_id)
    if client_message_id is not None:
        sent = session.messages.filter(client_message_id=client_message_id).first()
        if sent is not None:
            return sent
    if session.closed_at is not None:
        raise SessionClosedError
    if message.role != MessageRole.USER or message.hidden or _is_queued(message):
        raise InvalidInputError("Only messages that were sent can be edited.")
    kept = message.attachments if attachments is None else attachments
    branch = _fork(message)
    is_busy = session.runs.unfinished().exists()
    edited = add_message(
        session.pk,
        branch_id=branch.pk,
        role=MessageRole.USER,
        text=text,
        author=author,
        client_message_id=client_message_id,
        attachments=clean_json(with_command(author, text, kept)),
        model=message.model,
        queued_at=timezone.now() if is_busy else None,
        is_urgent=is_busy,
    )
    _activate(session, branch)
    _note_branch(session, branch, author)
    publish_on_commit(
        BranchCreated(
            session_id=session.pk,
            branch_id=branch.pk,
            parent_branch_id=branch.parent_branch_id,
            fork_point_message_id=branch.fork_point_message_id,
        )
    )
    if is_busy:
        runs.publish_queue(session.pk)
        runs.stop_agent(session)
    else:
        runs.start_run(edited, kind=RunKind.PROMPT)
    return edited


def _note_branch(session: AgentSession, branch: MessageBranch, author: User) -> None:
    depth, above = 0, branch.parent_branch
    while above is not None:
        depth, above = depth + 1, above.parent_branch
    point = branch.fork_point_message
    assert point is not None, "made by _fork"
    analytics.record(
        "session.branched",
        session=session,
        user=author,
        branch_depth=depth,
        total_branches_in_session=session.branches.count(),
        messages_before_fork=session.messages.filter(seq__lt=point.seq).count(),
    )


def regenerate(message: Message, *, author: User) -> Message:
    """Have the prompt that led to this answer answered again, on a branch.

    Raises: InvalidInputError when no prompt of a person comes before it.
    """
    prompt = prompt_of(message)
    if prompt is None:
        raise InvalidInputError("There is no message that this answers.")
    return edit_message(prompt, author=author, text=prompt.text)


def prompt_of(message: Message) -> Message | None:
    """The person's message that a block of the agent belongs to."""
    shown = within(lineage(message.session_id, message.branch_id))
    return (
        Message.objects.filter(
            shown,
            session_id=message.session_id,
            role=MessageRole.USER,
            hidden=False,
            seq__lt=message.seq,
        )
        .delivered()
        .order_by("-seq")
        .first()
    )


@transaction.atomic
def switch_branch(session: AgentSession, branch: MessageBranch) -> None:
    """Show this branch; the next message goes on from its end.

    A turn that runs on another branch goes on there.
    """
    locked = lock_session(session.pk)
    if locked.active_branch_id == branch.pk:
        return
    _activate(locked, branch)
    publish_on_commit(BranchSwitched(session_id=session.pk, branch_id=branch.pk))


def _activate(session: AgentSession, branch: MessageBranch) -> None:
    AgentSession.objects.filter(pk=session.pk).update(active_branch=branch)


def _is_queued(message: Message) -> bool:
    return message.queued_at is not None and message.delivered_at is None


def _fork(message: Message) -> MessageBranch:
    """A branch in place of `message`.

    Where the message is the one that its own branch began with, the new branch is a
    sibling of that, not a branch within it.
    """
    own = message.branch
    parent, point = own, message
    if own.fork_point_message is not None and _begins(own, message):
        assert own.parent_branch is not None, "a fork point is on a parent branch"
        parent, point = own.parent_branch, own.fork_point_message
    source_id, entry_id = memory_before(message)
    return MessageBranch.objects.create(
        session_id=message.session_id,
        parent_branch=parent,
        fork_point_message=point,
        sdk_fork_session_id=source_id,
        sdk_fork_uuid=entry_id,
    )


def _begins(branch: MessageBranch, message: Message) -> bool:
    """Whether nothing of the branch comes before; a divider does, and stays above."""
    is_said = Q(role=MessageRole.USER, hidden=False)
    is_divider = Q(role=MessageRole.SYSTEM, content__kind="cleared")
    earlier = branch.messages.delivered().filter(
        is_said | is_divider, seq__lt=message.seq
    )
    return not earlier.exists()


def memory_before(message: Message) -> tuple[UUID | None, UUID | None]:
    """Where the model's memory of everything before `message` is found.

    Returns: the conversation and its entry to end with; (None, None) when nothing
        comes before.
    """
    branch = message.branch
    conversation, end = memory_at_end(branch)
    if conversation is None:
        return None, None
    prompts = branch.messages.filter(
        role=MessageRole.USER, seq__gte=message.seq, sdk_uuid__isnull=False
    )
    for prompt in prompts.order_by("seq"):
        assert prompt.sdk_uuid is not None, "filtered"
        if has_entry(conversation, prompt.sdk_uuid):
            entry = turn_end_before(conversation, prompt.sdk_uuid)
            return (conversation, entry) if entry else (None, None)
    return conversation, end


def memory_at_end(branch: MessageBranch) -> tuple[UUID | None, UUID | None]:
    """Where the model's memory of the whole branch is found."""
    if not has_transcript(branch.sdk_session_id):
        return branch.sdk_fork_session_id, branch.sdk_fork_uuid
    return _end_of(branch.sdk_session_id)


def _end_of(conversation: UUID) -> tuple[UUID | None, UUID | None]:
    entry = last_entry_uuid(conversation)
    return (conversation, entry) if entry else (None, None)
