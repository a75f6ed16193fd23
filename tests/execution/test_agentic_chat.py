"""`stream_agentic_chat` on the real engine: one call, and everything that happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.http import Http404

from agents.api.feed import AgenticEvent
from agents.api.stream import stream_agentic_chat
from agents.demo.server import DemoServer
from agents.domain.approvals import Decision
from agents.errors import InvalidInputError
from agents.events.vocabulary import RunCompleted, StreamEnded
from agents.execution.engine import Engine
from agents.models import AgentSession, ApprovalRequest, User
from tests import factories

from .conftest import in_thread

THINK_AND_WRITE = """\
demo: think Secretly.
demo: tool Write {"file_path": "$CWD/a.txt", "content": "one"}
demo: say Written."""


def user_says(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


async def collect(*args: Any, **options: Any) -> list[AgenticEvent]:
    return [event async for event in stream_agentic_chat(*args, **options)]


def replies_in(events: list[AgenticEvent]) -> list[str]:
    ended = [event.message for event in events if event.type == StreamEnded.wire]
    return [each["text"] for each in ended if each and each["role"] == "assistant"]


@pytest.mark.cli
async def test_a_conversation_is_streamed_turn_by_turn(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    asked: list[str] = []

    async def approve(approval: ApprovalRequest) -> Decision:
        asked.append(approval.tool_name)
        return Decision(is_approved=True, channel="api")

    events = await collect(
        None,
        user_says(THINK_AND_WRITE),
        "You are terse.",
        "claude-haiku-4-5",
        tool_handler=approve,
        tools=["Write", "Read"],
        show_thinking=False,
        max_steps=9,
        max_budget=1.5,
        effort="low",
        user=alice,
    )

    session_id = events[0].session_id
    session = await in_thread(AgentSession.objects.get, pk=session_id)
    assert asked == ["Write"]
    assert (Path(session.cwd) / "a.txt").read_text() == "one"
    durable = [event.seq for event in events if event.seq is not None]
    assert durable == sorted(set(durable))
    over = events[-1].fact
    assert isinstance(over, RunCompleted)
    assert over.success
    sent = demo.state.requests[-1].body or {}
    assert sent["model"] == "claude-haiku-4-5"
    complete = "mcp__openswarm__complete_task"
    assert {tool["name"] for tool in sent["tools"]} == {"Write", "Read", complete}
    assert "You are terse." in str(sent["system"])
    settings = (session.max_steps, session.max_budget_usd_micros, session.effort)
    assert settings == (9, 1_500_000, "low")
    thought = await in_thread(session.messages.get, role="thinking")
    assert str(thought.pk) not in {event.data.get("message_id") for event in events}
    assert "thinking" not in {event.data.get("role") for event in events}

    again = await collect(
        session_id, user_says("say Hello again"), temperature=0.25, user=alice
    )

    assert replies_in(again) == ["Hello again"]
    assert again[0].seq is not None
    assert again[0].seq > durable[-1]
    assert {event.session_id for event in again} == {session_id}
    sent = demo.state.requests[-1].body or {}
    assert sent["temperature"] == 0.25
    assert "thinking" not in sent


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        ({"messages": user_says("a") + user_says("b")}, "messages"),
        ({"messages": user_says("  ")}, "messages"),
        ({"tools": ["Nope"]}, "tools"),
        ({"tools": [{"name": "mine", "input_schema": {}}]}, "tools"),
        ({"temperature": 3.0}, "temperature"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_steps": 201}, "max_steps"),
        ({"effort": "huge"}, "effort"),
        ({"provider": "nope"}, "provider"),
    ],
)
async def test_what_can_not_be_done_is_said_and_nothing_is_started(
    options: dict[str, Any], field: str, alice: User
) -> None:
    options = {"messages": user_says("Hello"), **options}

    with pytest.raises(InvalidInputError) as refused:
        await collect(None, user=alice, **options)

    assert refused.value.field == field
    assert not await in_thread(AgentSession.objects.exists)


@pytest.mark.django_db(transaction=True)
async def test_somebody_elses_conversation_is_not_there(alice: User) -> None:
    bob = await in_thread(factories.make_user, "bob")
    theirs = await in_thread(factories.make_session, bob)

    with pytest.raises(Http404):
        await collect(theirs.pk, user_says("Hello"), user=alice)
