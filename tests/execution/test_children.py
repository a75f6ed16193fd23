"""Sub-agents on the real engine: child sessions from the CLI's own words."""

from __future__ import annotations

import json

import pytest

from agents.demo.server import DemoServer
from agents.execution.engine import Engine
from agents.models import AgentSession, ApprovalRequest, CostEntry, Message, User
from agents.models.messages import MessageRole
from agents.models.runs import StopReason
from agents.models.sessions import SessionStatus

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli


def agent(*lines: str) -> str:
    return f"agent {json.dumps(script(*lines))}"


def script(*lines: str) -> str:
    return "\n".join(f"demo: {line}" for line in lines)


def bash(command: str) -> str:
    return f"tool Bash {json.dumps({'command': command})}"


async def guests(chat: Chat) -> list[AgentSession]:
    def look() -> list[AgentSession]:
        return list(chat.session.guests.order_by("depth", "created_at"))

    return await in_thread(look)


async def child_with(chat: Chat, status: SessionStatus) -> AgentSession:
    return await until(lambda: chat.session.guests.filter(status=status).first())


async def test_two_sub_agents_and_a_third_below_are_a_tree_with_costs(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    inner = agent("usage input 70 output 7", "say deepest")
    chat = await Chat.launch(
        alice,
        script(
            "usage input 1000 output 100",
            "parallel",
            agent("usage input 300 output 30", "say left"),
            agent("usage input 500 output 50", inner, "say right"),
            "end",
            "say over",
        ),
        security_mode="full",
    )
    run = await chat.finished()

    assert run.success
    children = await guests(chat)
    session = await chat.reload()
    assert [each.status for each in children] == [SessionStatus.COMPLETED] * 3
    by_depth = [(each.depth, each.parent_session_id) for each in children]
    assert [depth for depth, _ in by_depth] == [1, 1, 2]
    assert {parent for depth, parent in by_depth if depth == 1} == {session.pk}
    grandchild = children[2]
    right = next(each for each in children if each.pk == grandchild.parent_session_id)
    words = await in_thread(
        lambda: list(
            session.messages.filter(
                parent_tool_use_id=right.parent_tool_use_id,
                role=MessageRole.ASSISTANT,
            ).values_list("text", flat=True)
        )
    )
    assert words == ["right"]

    sent = {call.agent_id for call in demo.state.model_calls if call.agent_id}
    assert {each.agent_id for each in children} <= sent
    entries = await in_thread(lambda: list(CostEntry.objects.filter(session=session)))
    for child in children:
        own = [entry for entry in entries if entry.agent_id == child.agent_id]
        assert own
        assert child.cost_usd_micros == sum(entry.usd_micros or 0 for entry in own)
    assert session.cost_usd_micros == sum(entry.usd_micros or 0 for entry in entries)
    parts = sum(child.cost_usd_micros for child in children)
    main = [entry.usd_micros or 0 for entry in entries if not entry.agent_id]
    assert session.cost_usd_micros == parts + sum(main)


async def test_a_sub_agents_call_stands_below_it_while_it_is_asked_about(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(alice, script(agent(bash("touch inside"), "say done")))
    await chat.decide(is_approved=True)  # the Agent call itself
    child = await child_with(chat, SessionStatus.WAITING_APPROVAL)

    def asked() -> tuple[ApprovalRequest, Message]:
        approval = chat.session.approvals.get(agent_id=child.agent_id)
        call = chat.session.messages.get(
            tool_use_id=approval.tool_use_id, role=MessageRole.TOOL_CALL
        )
        return approval, call

    approval, call = await in_thread(asked)
    assert approval.tool_name == "Bash"
    assert call.parent_tool_use_id == child.parent_tool_use_id

    await chat.decide(is_approved=True)
    await chat.finished()

    await child_with(chat, SessionStatus.COMPLETED)
    assert chat.file("inside").exists()


async def test_stop_stops_the_sub_agent_with_its_session(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice, script(agent("say begun", "hold sub-agent-stop")), security_mode="full"
    )
    await in_thread(demo.state.wait_until_held, "sub-agent-stop")
    await child_with(chat, SessionStatus.RUNNING)

    await chat.stop()

    assert (await chat.finished()).stop_reason == StopReason.CANCELLED
    assert [each.status for each in await guests(chat)] == [SessionStatus.STOPPED]


async def test_a_denied_agent_call_starts_nobody(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(alice, script(agent("say begun")))
    await chat.decide(is_approved=False, message="Do it yourself.")
    await chat.finished()

    assert await guests(chat) == []
