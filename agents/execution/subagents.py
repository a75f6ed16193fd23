"""Sub-agents of a turn: the CLI's words about them become child sessions.

`TaskStarted` is the one message that names both the call and the agent's id, and it
comes before anything that the agent says, does or costs. (`SubagentStart` names the
agent alone.) How a sub-agent ends is told by the result of its call.
"""

from __future__ import annotations

from claude_agent_sdk import TaskStartedMessage

from agents.domain.subagents import start_sub_agent

from .database import in_database
from .turn import Turn

_KIND = "local_agent"


async def task_started(turn: Turn, message: TaskStartedMessage) -> None:
    """Give a sub-agent its session; other tasks of the CLI are no agents."""
    if message.task_type != _KIND or not message.tool_use_id:
        return
    turn.sub_agents[message.task_id] = message.tool_use_id
    await in_database(
        start_sub_agent,
        turn.run,
        tool_use_id=message.tool_use_id,
        agent_id=message.task_id,
    )
