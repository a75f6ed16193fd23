"""MCP servers as rows, as if they had been tested and had answered."""

from __future__ import annotations

from typing import Any

from agents.domain import mcp_discovery, mcp_servers
from agents.models import McpServer, McpTool, User
from agents.models.mcp_servers import McpStatus

READS = {"readOnlyHint": True}


def found(name: str, **fields: Any) -> mcp_discovery.FoundTool:
    return mcp_discovery.FoundTool(
        name=name,
        description=fields.pop("description", f"Does {name}."),
        input_schema=fields.pop("input_schema", {"type": "object"}),
        annotations=fields,
    )


def discover(server: McpServer, *tools: mcp_discovery.FoundTool) -> None:
    report = mcp_discovery.Report(McpStatus.CONNECTED, tools=tools)
    mcp_discovery.record_report(server.pk, server.generation, report)
    server.refresh_from_db()


def make_server(
    user: User,
    name: str = "Notes",
    *,
    tools: tuple[mcp_discovery.FoundTool, ...] = (),
    secrets: dict[str, str] | None = None,
    **fields: Any,
) -> McpServer:
    """A server of `user`, or with `owner=None` one for everybody."""
    fields = {"owner": user, "transport": "http", "url": "http://[::1]:9/x", **fields}
    server = McpServer(name=name, **fields)
    mcp_servers.save_server(server, user, secrets=secrets or {})
    if tools:
        discover(server, *tools)
    return server


def notes_server(user: User, **fields: Any) -> McpServer:
    """With a tool that reads and one that writes."""
    tools = (found("read", **READS), found("write"))
    return make_server(user, tools=tools, **fields)


def tool(server: McpServer, name: str) -> McpTool:
    return server.tools.select_related("server").get(name=name)


def set_policy(server: McpServer, name: str, policy: str, actor: User) -> None:
    mcp_servers.set_policies(server, {tool(server, name).pk: policy}, actor)
