"""Blocks of the system prompt about what surrounds a session."""

from __future__ import annotations

from collections.abc import Iterator

from agents.domain.mcp_offers import connected_servers, unconnected_servers
from agents.models import AgentSession, McpServer

_INTRO = (
    "These MCP servers are connected for the user. Prefer their tools where a task"
    " concerns the service behind them."
)
_UNCONNECTED = (
    "Configured but not connected; the user has to sign in, or to correct the"
    " credentials, under Settings → MCP servers:"
)


def build_connected_tools_context(session: AgentSession) -> str:
    """The servers with their offered tools, and those that lack a sign-in.

    Empty without any. Only what changes rarely stands here: a new system prompt costs
    the session a new process.
    """
    parts = []
    if connected := connected_servers(session):
        blocks = ["\n".join(_describe(server, names)) for server, names in connected]
        parts.append("\n\n".join([_INTRO, *blocks]))
    if waiting := unconnected_servers(session):
        names = "\n".join(f"  - {server.slug}" for server in waiting)
        parts.append(f"{_UNCONNECTED}\n{names}")
    if not parts:
        return ""
    text = "\n\n".join(parts)
    return f"<connected_mcp_tools>\n{text}\n</connected_mcp_tools>"


def _describe(server: McpServer, names: list[str]) -> Iterator[str]:
    yield f"MCP server: {server.slug}"
    yield "  Status: connected"
    if server.account_email:
        yield f"  Connected account: {server.account_email}"
        yield (
            "  Where a tool wants the user's e-mail address, use this one; do not ask"
            " for it."
        )
    yield f"  Available tools ({len(names)}): {', '.join(names)}"
