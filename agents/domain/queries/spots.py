"""Spots: where a message stands, so that a link can lead to it.

A message may stand on a version that is not the shown one, and on any page of it.
Looking there changes nothing: switching is a person's own act.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from uuid import UUID

from agents.conf import conf
from agents.models import AgentSession, Message
from agents.models.messages import MessageQuerySet, MessageRole

from .branches import Stretch, lineage, within

_MAX_DEPTH = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A page of a transcript."""

    session: AgentSession
    """As if the looked-at branch were the shown one; never to be saved."""
    is_shown: bool = True
    """Whether it is the shown one."""
    before_seq: int | None = None
    """Where the page ends; None: it is the newest one."""

    @property
    def branch_id(self) -> UUID | None:
        return self.session.active_branch_id

    @property
    def is_live(self) -> bool:
        return self.is_shown and self.before_seq is None


def find_spot(
    session: AgentSession, *, branch_id: UUID | None, message_id: UUID | None = None
) -> Spot | None:
    """The page with the message, else the branch's newest; None if neither is there.

    A message that the shown branch has is looked at there, whichever was named.
    """
    if session.is_sub_agent or not (branch_id or message_id):
        return None
    message = _messages(session).filter(pk=message_id).first() if message_id else None
    if message is None:
        line = lineage(session.pk, branch_id)
        return _spot(session, line) if line else None
    for each in (session.active_branch_id, branch_id, message.branch_id):
        line = lineage(session.pk, each)
        if _messages(session).filter(within(line), pk=message.pk).exists():
            return _spot(session, line, _page_end(session, line, message))
    return None


def _spot(
    session: AgentSession, line: list[Stretch], before_seq: int | None = None
) -> Spot:
    branch_id = line[0].branch_id
    looked_at = copy(session)
    looked_at.active_branch_id = branch_id
    return Spot(
        session=looked_at,
        is_shown=branch_id == session.active_branch_id,
        before_seq=before_seq,
    )


def _page_end(
    session: AgentSession, line: list[Stretch], message: Message
) -> int | None:
    """With about half a page behind the message; None where the newest page has it."""
    top = _top_of(session, message)
    later = (
        _messages(session)
        .filter(within(line), parent_tool_use_id="", seq__gt=top.seq)
        .exclude(role=MessageRole.TOOL_RESULT)
        .order_by("seq")
        .values_list("seq", flat=True)
    )
    behind = conf().transcript_page_size // 2
    return later[behind : behind + 1].first()


def _top_of(session: AgentSession, message: Message) -> Message:
    """The message as whose part it is shown: its call, or that of its sub-agent."""
    for _ in range(_MAX_DEPTH):
        call_id = message.parent_tool_use_id
        if message.role == MessageRole.TOOL_RESULT:
            call_id = message.tool_use_id
        calls = _messages(session).filter(role=MessageRole.TOOL_CALL)
        above = calls.filter(tool_use_id=call_id).first() if call_id else None
        if above is None:
            break
        message = above
    return message


def _messages(session: AgentSession) -> MessageQuerySet:
    rows = Message.objects.filter(session_id=session.pk, hidden=False)
    return rows.exclude(queued_at__isnull=False, delivered_at=None).defer(
        "text", "rendered_html", "content", "attachments"
    )
