"""The one server of the tools that every agent gets from OpenSwarm itself."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from claude_agent_sdk import create_sdk_mcp_server
from claude_agent_sdk.types import McpSdkServerConfig

from .memory import memory_tools
from .tasks import task_tools
from .web import FetchPage, web_tools

SERVER_NAME = "openswarm"


def own_server(
    session_id: UUID, offered: Collection[str], fetch_page: FetchPage
) -> McpSdkServerConfig:
    """The server of one session's CLI process, with the offered ones of its tools."""
    every = [
        *task_tools(session_id),
        *memory_tools(session_id),
        *web_tools(fetch_page),
    ]
    kept = [tool for tool in every if f"mcp__{SERVER_NAME}__{tool.name}" in offered]
    return create_sdk_mcp_server(SERVER_NAME, tools=kept)
