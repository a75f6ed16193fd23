"""`InvokeAgent` on the real engine: one agent asks a fork of another session."""

from __future__ import annotations

import json

import pytest

from agents.demo.server import DemoServer
from agents.domain.runs import stop_agent
from agents.execution.engine import Engine
from agents.models import AgentSession, User
from agents.models.messages import MessageRole
from agents.models.runs import StopReason
from agents.models.sessions import SessionKind

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli

TOOL = "mcp__openswarm-invoke-agent__InvokeAgent"


def asking(session: AgentSession, message: str) -> str:
    arguments = {"session_id": str(session.pk), "message": message}
    return f"demo: tool {TOOL} {json.dumps(arguments)}"


async def child_of(chat: Chat) -> AgentSession:
    return await until(lambda: chat.session.children.first())


async def test_an_agent_gets_the_answer_of_a_fork_that_remembers(
    engine: Engine, alice: User, demo: DemoServer, override_conf
) -> None:
    override_conf(max_runs_per_process=1)  # the child must not wait for a slot
    source = await Chat.launch(alice, "say: the bees are in the attic")
    await source.finished()

    chat = await Chat.launch(alice, asking(source.session, "what did I say before?"))
    await chat.decide(is_approved=True)
    run = await chat.finished()

    assert run.success
    child = await child_of(chat)
    assert (child.kind, child.owner_id, child.depth) == (
        SessionKind.INVOKED_AGENT,
        alice.pk,
        1,
    )
    result = await in_thread(
        lambda: chat.session.messages.get(role=MessageRole.TOOL_RESULT)
    )
    first_line = result.text.splitlines()[0]
    assert first_line == (
        f"**Invoked Agent Result** — {source.session.name} (forked session: {child.pk})"
    )
    assert "the bees are in the attic" in result.text
    assert await in_thread(source.session.messages.count) == 2


async def test_stopping_the_parent_stops_the_child(engine: Engine, alice: User) -> None:
    source = await Chat.launch(alice, "say: one")
    await source.finished()
    task = asking(source.session, "demo: stream 4000 words at 40/s")
    chat = await Chat.launch(alice, task)
    await chat.decide(is_approved=True)
    child = Chat(await child_of(chat), alice)
    await until(lambda: child.session.messages.filter(is_streaming=True).first())

    await in_thread(stop_agent, chat.session)

    assert (await chat.finished()).stop_reason == StopReason.CANCELLED
    assert (await child.finished()).stop_reason == StopReason.CANCELLED
