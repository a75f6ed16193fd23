"""One agent asks another: a fork of a session answers one message.

The fork has the other session's memory and folder, belongs to the same person, and
stands below the session that asked. Depth and number are limited, and a session can't
be asked by what it has itself set to work.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from agents.conf import conf
from agents.errors import InvalidInputError
from agents.models import AgentSession, Message
from agents.models.messages import MessageRole
from agents.models.runs import LIVE_STATES, RunState
from agents.models.sessions import ACTIVE_STATUSES, SessionKind
from agents.policy.tools import INVOKE_AGENT

from . import messages
from .blocks import publish_saved
from .duplicates import duplicate_session
from .locks import lock_session

NO_ANSWER = "No response from invoked agent."


@dataclass(frozen=True, slots=True)
class Answer:
    """What the asking agent is told."""

    source_name: str
    forked_session_id: UUID
    response: str
    cost_usd_micros: int

    def as_text(self) -> str:
        """The format of the source documents; pages read its first line."""
        lines = [
            f"**Invoked Agent Result** — {self.source_name}"
            f" (forked session: {self.forked_session_id})"
        ]
        if self.cost_usd_micros > 0:
            lines.append(f"*Cost: ${self.cost_usd_micros / 1_000_000:.4f}*")
        return "\n".join([*lines, "", self.response])


@transaction.atomic
def invoke_agent(parent_id: UUID, source_id: UUID, message: str) -> AgentSession:
    """Fork the source session below `parent_id` and send the fork a message.

    Raises: InvalidInputError saying why not; its sentence goes to the asking agent.
    """
    parent = lock_session(parent_id)
    source = AgentSession.objects.filter(
        pk=source_id, owner=parent.owner, host_session=None
    ).first()
    if source is None:
        raise InvalidInputError(f"There is no session {source_id}.")
    _check_limits(parent, source)
    child = duplicate_session(
        source,
        parent.owner,
        name=f"{source.name} (invoked)",
        kind=SessionKind.INVOKED_AGENT,
        parent=parent,
        shares_folder=True,
    )
    _note_call(parent, child, source_id, message)
    messages.send_message(child, author=parent.owner, text=message)
    return child


def _note_call(
    parent: AgentSession, child: AgentSession, source_id: UUID, message: str
) -> None:
    """Which call the child answers; a server of tools isn't told its id.

    Of several calls with the same words any will do, as long as each has one child.
    """
    calls = Message.objects.filter(
        session=parent,
        role=MessageRole.TOOL_CALL,
        tool_name__endswith=f"__{INVOKE_AGENT}",
        run__state__in=LIVE_STATES,
    )
    results = Message.objects.filter(session=parent, role=MessageRole.TOOL_RESULT)
    taken = parent.children.exclude(parent_tool_use_id="")
    open_calls = list(
        calls.exclude(tool_use_id__in=results.values("tool_use_id"))
        .exclude(tool_use_id__in=taken.values("parent_tool_use_id"))
        .order_by("seq")
    )
    asked = {"session_id": str(source_id), "message": message}
    same = (call for call in open_calls if call.content.get("input") == asked)
    # A person may have edited what was asked; the row keeps the model's words.
    call = next(same, next(iter(open_calls), None))
    if call is not None:
        child.parent_tool_use_id = call.tool_use_id
        child.save(update_fields=["parent_tool_use_id"])
        publish_saved(call, is_new=False)


def _check_limits(parent: AgentSession, source: AgentSession) -> None:
    if parent.depth + 1 > conf().max_invocation_depth:
        raise InvalidInputError(
            f"Agents can ask each other {conf().max_invocation_depth} levels deep at"
            " most."
        )
    working = parent.children.filter(
        status__in=ACTIVE_STATUSES, kind=SessionKind.INVOKED_AGENT
    ).count()
    if working >= conf().max_children:
        raise InvalidInputError(
            f"{working} agents work for this session already; wait for one of them."
        )
    if source.pk in _line_above(parent):
        raise InvalidInputError(
            "This session waits for you, or is you; it can't be asked from here."
        )


def _line_above(session: AgentSession) -> set[UUID]:
    """The session, and everything that waits for its answer."""
    line: set[UUID] = set()
    above: AgentSession | None = session
    while above is not None and above.pk not in line:
        line.add(above.pk)
        above = above.parent_session
    return line


def answer_of(child_id: UUID) -> Answer | None:
    """The answer, once the child's turn is over; None while it works."""
    child = AgentSession.objects.get(pk=child_id)
    run = child.runs.order_by("-created_at").first()
    if run is None or run.state != RunState.FINISHED:
        return None
    said = (
        child.messages.filter(run=run, role=MessageRole.ASSISTANT)
        .exclude(text="")
        .order_by("-seq")
        .values_list("text", flat=True)
        .first()
    )
    return Answer(
        source_name=child.name.removesuffix(" (invoked)"),
        forked_session_id=child.pk,
        response=said or run.error_text or NO_ANSWER,
        cost_usd_micros=child.cost_usd_micros,
    )
