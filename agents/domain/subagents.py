"""Sub-agents: what the Agent tool starts, as child sessions of the one that runs them.

A sub-agent has no rows of its own. What it says and does stands in its host's rows,
under the `parent_tool_use_id` of the call that started it; its requests carry its
`agent_id`, and so do the ledger's entries of what it costs. Its session row gives all
that a page, a status and a total. Its status follows its host's rows
(`status.refresh_sub_agents`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Q

from agents.events.bus import publish_on_commit
from agents.events.vocabulary import StatusChanged
from agents.models import AgentSession, Message, Run
from agents.models.fields import fitting
from agents.models.messages import MessageQuerySet, MessageRole
from agents.models.sessions import ACTIVE_STATUSES, SessionKind, SessionStatus
from agents.rendering.text import clean_text, preview

from . import usage
from .blocks import publish_saved
from .locks import lock_run

NAME_CHARACTERS = 60
_FROM_HOST = (
    *("owner", "mode", "model", "provider", "effort", "security_mode"),
    *("allowed_tools", "mcp_servers_off", "on_timeout", "network", "cwd"),
)


@transaction.atomic
def start_sub_agent(run: Run, *, tool_use_id: str, agent_id: str) -> AgentSession:
    """The child session of an Agent call that has begun; telling again changes nothing.

    Its parent is the session of the run, or the sub-agent that made the call.

    Raises: LeaseLostError.
    """
    host = lock_run(run)
    known = host.guests.filter(
        **fitting(AgentSession, parent_tool_use_id=tool_use_id)
    ).first()
    if known is not None:
        return known
    call = Message.objects.filter(
        session=host,
        role=MessageRole.TOOL_CALL,
        **fitting(Message, tool_use_id=tool_use_id),
    ).first()
    sub_agent = _new_sub_agent(host, _parent_of(host, call), call)
    for name, value in fitting(
        AgentSession, parent_tool_use_id=tool_use_id, agent_id=agent_id
    ).items():
        setattr(sub_agent, name, value)
    sub_agent.save()
    usage.add_up_sub_agent(sub_agent)  # an answer may have been counted already
    publish_on_commit(StatusChanged(session_id=sub_agent.pk, status=sub_agent.status))
    if call is not None:  # its card shows the way to the sub-agent's page
        publish_saved(call, is_new=False)
    return sub_agent


def _parent_of(host: AgentSession, call: Message | None) -> AgentSession:
    if call is None or not call.parent_tool_use_id:
        return host
    caller = host.guests.filter(parent_tool_use_id=call.parent_tool_use_id).first()
    return caller or host


def _new_sub_agent(
    host: AgentSession, parent: AgentSession, call: Message | None
) -> AgentSession:
    return AgentSession(
        name=_name_of(call.content.get("input") if call is not None else None),
        name_is_automatic=False,
        kind=SessionKind.SUB_AGENT,
        status=SessionStatus.RUNNING,
        host_session=host,
        parent_session=parent,
        depth=parent.depth + 1,
        owns_cwd=False,
        **{name: getattr(host, name) for name in _FROM_HOST},
    )


def _name_of(tool_input: Any) -> str:
    """What the call says it is for, else how its prompt begins."""
    if isinstance(tool_input, dict):
        for field in ("description", "prompt"):
            text = clean_text(str(tool_input.get(field) or "")).strip()
            if text:
                return preview(text, NAME_CHARACTERS)
    return "Sub-agent"


def share_with_sub_agents(host: AgentSession, changed: Iterable[str]) -> None:
    """Those at work are bound by what their host is bound by, and say so."""
    shared = {name: getattr(host, name) for name in {*changed} & {*_FROM_HOST}}
    if shared:
        host.guests.filter(status__in=ACTIVE_STATUSES).update(**shared)


def rows_of(session: AgentSession) -> MessageQuerySet:
    """Everything said and done in a session, or by a sub-agent in its host's."""
    rows = Message.objects.filter(session_id=session.host_id)
    if session.is_sub_agent:
        rows = rows.filter(parent_tool_use_id=session.parent_tool_use_id)
    return rows


def sub_agents_below(session: AgentSession) -> list[AgentSession]:
    """The sub-agents that work for this session or sub-agent, at any depth."""
    guests = AgentSession.objects.filter(host_session_id=session.host_id)
    if not session.is_sub_agent:
        return list(guests.order_by("created_at", "pk"))
    below: list[AgentSession] = []
    level = [session.pk]
    known = list(guests.order_by("created_at", "pk"))
    while level:
        found = [each for each in known if each.parent_session_id in level]
        below += found
        level = [each.pk for each in found]
    return below


def calls_below(session: AgentSession) -> Q:
    """The requests of a sub-agent and of those that it started, as a filter."""
    agent_ids = [each.agent_id for each in sub_agents_below(session)]
    return Q(agent_id__in=[session.agent_id, *agent_ids])
