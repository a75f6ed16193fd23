"""`InvokeAgent`: an agent asks another session of the same person.

In-process, so there is no endpoint to protect and no second way in. The call waits
for the fork's turn; when it is cancelled, the fork is stopped.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from claude_agent_sdk import SdkMcpTool, create_sdk_mcp_server, tool
from claude_agent_sdk.types import McpSdkServerConfig

from agents.conf import conf
from agents.domain import invocation, runs
from agents.errors import AgentsError
from agents.events.bus import listen, session_group
from agents.models import AgentSession
from agents.tasks import spawn

SERVER_NAME = "openswarm-invoke-agent"
DESCRIPTION = (
    "Ask another agent session of the same user. The session is forked with its whole"
    " memory, answers your message in one turn, and you get its answer. The original"
    " session is not changed."
)
SCHEMA = {
    "type": "object",
    "properties": {
        "session_id": {
            "type": "string",
            "description": "The ID of the session to ask.",
        },
        "message": {"type": "string", "description": "What to ask it."},
    },
    "required": ["session_id", "message"],
}


def invoke_agent_server(parent_id: UUID) -> McpSdkServerConfig:
    """The tool server of one session's CLI process."""
    return create_sdk_mcp_server(SERVER_NAME, tools=[_invoke_tool(parent_id)])


def _invoke_tool(parent_id: UUID) -> SdkMcpTool[Any]:
    @tool("InvokeAgent", DESCRIPTION, SCHEMA)
    async def invoke(arguments: dict[str, Any]) -> dict[str, Any]:
        for name in ("session_id", "message"):
            if not str(arguments.get(name) or "").strip():
                return _error(f"{name} is required")
        try:
            source_id = UUID(str(arguments["session_id"]))
            child = await database_sync_to_async(invocation.invoke_agent)(
                parent_id, source_id, str(arguments["message"])
            )
        except ValueError:
            return _error(f"there is no session {arguments['session_id']}")
        except AgentsError as error:
            return _error(error.user_message)
        answer = await _wait(child)
        return {"content": [{"type": "text", "text": answer.as_text()}]}

    return invoke


def _error(sentence: str) -> dict[str, Any]:
    text = f"Error: {sentence}"
    return {"content": [{"type": "text", "text": text}], "is_error": True}


async def _wait(child: AgentSession) -> invocation.Answer:
    """Until the fork's turn is over; woken by its events, or by the next look."""
    try:
        async with listen(session_group(child.pk)) as inbox:
            while True:
                answer = await database_sync_to_async(invocation.answer_of)(child.pk)
                if answer is not None:
                    return answer
                await inbox.wait(conf().approval_poll_seconds)
    except asyncio.CancelledError:
        spawn(_stop(child), name=f"stop-invoked-{child.pk}")
        raise


async def _stop(child: AgentSession) -> None:
    await database_sync_to_async(runs.stop_agent)(child)
