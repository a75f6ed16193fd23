"""The tools of a session, with those of connected servers."""

from __future__ import annotations

import pytest

from agents.domain.capability import record_found
from agents.domain.mcp_offers import offered_servers, with_tools
from agents.execution.tool_router import get_chat_tools_for_model
from agents.models import AgentSession, User
from agents.models.capability import CapabilitySource
from tests.mcp.rows import notes_server

pytestmark = pytest.mark.django_db

READ, WRITE = "mcp__notes__read", "mcp__notes__write"
COMPLETE = "mcp__openswarm__complete_task"


def tools(session: AgentSession, include_all: bool = True) -> set[str]:
    return set(get_chat_tools_for_model("llama-9", session, include_all))


def test_servers_follow_the_same_rules(session: AgentSession, alice: User) -> None:
    notes_server(alice)

    assert {"Bash", READ, WRITE} <= tools(session)
    assert {"Read", READ} <= tools(session, include_all=False)
    assert {"Bash", WRITE}.isdisjoint(tools(session, include_all=False))

    session.allowed_tools = ["Read", "mcp:notes"]
    assert tools(session) == {"Read", READ, WRITE, COMPLETE}
    session.allowed_tools = ["Read"]
    assert tools(session) == {"Read", COMPLETE}

    session.allowed_tools, session.security_mode = None, "full"
    session.owner.security_ceiling = "sandbox"
    assert {"Bash", READ, WRITE}.isdisjoint(tools(session))


def test_a_server_is_given_with_the_tools_that_are_left(
    session: AgentSession, alice: User
) -> None:
    notes_server(alice)
    servers = offered_servers(session)

    (server,) = with_tools(servers, tools(session, include_all=False))
    assert [tool.name for tool in server.tools] == ["read"]

    record_found("llama-9", CapabilitySource.PERSON, native_tools=False)
    assert tools(session) == set()
    assert with_tools(servers, tools(session)) == ()
