"""Which tools of connected servers a session is offered, and how they are treated.

Read from the rows of what was found, so a server that is slow or dead delays nobody.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any
from uuid import UUID

from agents.models import AgentSession, McpServer, McpTool, User
from agents.models.mcp_servers import McpPolicy, McpServerQuerySet, McpStatus
from agents.policy.modes import SecurityMode
from agents.policy.tools import ToolClass, ToolPolicy


@dataclass(frozen=True, slots=True)
class OfferedTool:
    name: str
    """As its server calls it."""
    offered_name: str
    description: str
    input_schema: dict[str, Any]
    annotations: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OfferedServer:
    """What a session's process is given of one server."""

    server_id: UUID
    slug: str
    instructions: str
    tools: tuple[OfferedTool, ...]


@dataclass(frozen=True, slots=True)
class ForeignTools:
    """The tools of servers that a session may see, by their full names."""

    classes: dict[str, ToolClass] = field(default_factory=dict)
    policies: dict[str, ToolPolicy] = field(default_factory=dict)
    offered: frozenset[str] = frozenset()


def servers_of(session: AgentSession) -> McpServerQuerySet:
    """The servers that are switched on for this session."""
    visible = McpServer.objects.visible_to(session.owner).filter(is_enabled=True)
    return visible.exclude(pk__in=session.mcp_servers_off)


def known_tools(session: AgentSession) -> list[McpTool]:
    """The listed tools of these servers, by server and name.

    Of two servers of one name the person's own stands before the site's. One that
    waits to be signed in to has nothing to offer.
    """
    servers = servers_of(session).exclude(status=McpStatus.NEEDS_AUTH)
    tools = McpTool.objects.filter(server__in=servers, is_listed=True)
    found = list(tools.select_related("server").order_by("server__slug", "name"))
    own = {tool.server.slug for tool in found if tool.server.owner_id is not None}
    return [
        tool
        for tool in found
        if tool.server.owner_id is not None or tool.server.slug not in own
    ]


def foreign_tools(session: AgentSession) -> ForeignTools:
    """For the gate: the class and the policy of each, and which may be called."""
    tools = known_tools(session)
    return ForeignTools(
        classes={tool.full_name: tool.tool_class for tool in tools},
        policies={tool.full_name: _policy(tool, session) for tool in tools},
        offered=frozenset(tool.full_name for tool in tools if _is_on(tool, session)),
    )


def offered_servers(session: AgentSession) -> tuple[OfferedServer, ...]:
    """For the agent's process; a server without an offered tool is left out."""
    tools = [tool for tool in known_tools(session) if _is_on(tool, session)]
    return tuple(
        _offer(server, of_server)
        for server, of_server in groupby(tools, key=lambda tool: tool.server)
    )


def with_tools(
    servers: Iterable[OfferedServer], tools: Container[str]
) -> tuple[OfferedServer, ...]:
    """The servers with those of their tools that are among `tools`, by full name."""
    kept = (
        replace(
            server,
            tools=tuple(
                tool
                for tool in server.tools
                if f"mcp__{server.slug}__{tool.offered_name}" in tools
            ),
        )
        for server in servers
    )
    return tuple(server for server in kept if server.tools)


def connected_servers(session: AgentSession) -> list[tuple[McpServer, list[str]]]:
    """The servers that have something to offer, each with the names of its tools."""
    tools = [tool for tool in known_tools(session) if _is_on(tool, session)]
    return [
        (server, [tool.offered_name for tool in of_server])
        for server, of_server in groupby(tools, key=lambda tool: tool.server)
    ]


def unconnected_servers(session: AgentSession) -> list[McpServer]:
    """Those that offer nothing because they refuse the credentials."""
    if session.security_mode == SecurityMode.DENY:
        return []
    waiting = servers_of(session).filter(status=McpStatus.NEEDS_AUTH)
    return [server for server in waiting if _may_use(server, session)]


def _offer(server: McpServer, tools: Iterable[McpTool]) -> OfferedServer:
    return OfferedServer(
        server_id=server.pk,
        slug=server.slug,
        instructions=server.instructions,
        tools=tuple(
            OfferedTool(
                name=tool.name,
                offered_name=tool.offered_name,
                description=tool.description,
                input_schema=tool.input_schema,
                annotations=tool.annotations,
            )
            for tool in tools
        ),
    )


def _is_on(tool: McpTool, session: AgentSession) -> bool:
    """What neither its policy, nor the mode, nor the security mode takes away."""
    if session.security_mode == SecurityMode.DENY or tool.policy == McpPolicy.DENY:
        return False
    names_it = tool.full_name in (session.allowed_tools or ())
    return names_it or _may_use(tool.server, session)


def _may_use(server: McpServer, session: AgentSession) -> bool:
    """A mode names a server as rules do, or as `mcp:<server>`."""
    if session.allowed_tools is None:
        return True
    names = {f"mcp__{server.slug}", f"mcp:{server.slug}"}
    return not names.isdisjoint(session.allowed_tools)


def _policy(tool: McpTool, session: AgentSession) -> ToolPolicy:
    policy = ToolPolicy(tool.policy)
    is_own = tool.server.owner_id is not None
    if policy is ToolPolicy.ALWAYS_ALLOW and is_own and not may_allow(session.owner):
        return ToolPolicy.ASK
    return policy


def may_allow(person: User) -> bool:
    """Below `ask`, only owners say what a person's agents may do unasked."""
    ceiling = SecurityMode(person.security_ceiling)
    return person.is_owner or ceiling.rank >= SecurityMode.ASK.rank
