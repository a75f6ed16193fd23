"""What tools of our own have in common: their answers, and how they fail.

A tool's function is plain and synchronous, or a coroutine; what it returns is the
answer's text, and an `AgentsError` of the domain becomes an error the model can read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from channels.db import database_sync_to_async
from claude_agent_sdk import SdkMcpTool
from claude_agent_sdk import tool as sdk_tool
from mcp.types import ToolAnnotations

from agents.errors import AgentsError, InvalidInputError
from agents.models import AgentSession

Arguments = dict[str, Any]
Work = Callable[[Arguments], Awaitable[str]]


def text_field(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def make_tool(
    name: str, description: str, input_schema: Any, work: Work, *, reads: bool = False
) -> SdkMcpTool[Any]:
    """A tool whose failures are told to the model, and never raised into the SDK."""

    @sdk_tool(
        name,
        description,
        input_schema,
        annotations=ToolAnnotations(read_only_hint=reads),
    )
    async def run(arguments: Arguments) -> dict[str, Any]:
        try:
            text = await work(arguments)
        except AgentsError as error:
            return {**_content(f"Error: {error.user_message}"), "is_error": True}
        return _content(text)

    return run


def in_session(
    session_id: Any, function: Callable[[AgentSession, Arguments], str]
) -> Work:
    """Work on the rows of the session's owner, in one go of the database thread."""

    def with_session(arguments: Arguments) -> str:
        found = AgentSession.objects.select_related("owner", "task")
        return function(found.get(pk=session_id), arguments)

    async def work(arguments: Arguments) -> str:
        text: str = await database_sync_to_async(with_session)(arguments)
        return text

    return work


def text_of(arguments: Arguments, name: str, *, required: bool = True) -> str:
    """Raises: InvalidInputError where it is missing or no text."""
    value = arguments.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value.strip()):
        raise InvalidInputError(f"{name} is required, as text.", field=name)
    return value


def _content(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}
