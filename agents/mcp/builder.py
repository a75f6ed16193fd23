"""The servers of a session as in-process ones, under the names that the CLI gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from uuid import UUID

from claude_agent_sdk.types import McpSdkServerConfig
from mcp.server import Server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    Tool,
)

from agents.domain.mcp_offers import OfferedServer, OfferedTool

CallTool = Callable[[UUID, str, dict[str, Any]], Awaitable[CallToolResult]]


def build_mcp_servers(
    offered: Iterable[OfferedServer], call: CallTool
) -> dict[str, McpSdkServerConfig]:
    """One server for each that is offered, with schemas and annotations passed through.

    The model knows its tools as `mcp__<slug>__<offered name>`. What mode, policy and
    session take away is not among `offered`.
    """
    return {
        server.slug: McpSdkServerConfig(
            type="sdk", name=server.slug, instance=_server(server, call)
        )
        for server in offered
    }


def _server(offered: OfferedServer, call: CallTool) -> Server[Any]:
    tools = {tool.offered_name: tool for tool in offered.tools}
    listed = ListToolsResult(tools=[_as_tool(tool) for tool in offered.tools])

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return listed

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            text = TextContent(type="text", text=f"There is no tool {params.name}.")
            return CallToolResult(content=[text], is_error=True)
        result = await call(offered.server_id, tool.name, params.arguments or {})
        return _readable(result)

    return Server(
        offered.slug,
        version="1",
        instructions=offered.instructions or None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _readable(result: CallToolResult) -> CallToolResult:
    """The CLI shows the structured form instead of the text, whose JSON it only is."""
    if not result.content:
        return result
    return result.model_copy(update={"structured_content": None})


def _as_tool(tool: OfferedTool) -> Tool:
    return Tool.model_validate(
        {
            "name": tool.offered_name,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "annotations": tool.annotations or None,
        }
    )
