"""No call of a budget that is used up reaches the provider."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agents.demo.server import DemoServer
from agents.models import AgentSession, CostEntry

from .caller import Caller, request, upstream


@pytest.fixture
async def poor(session: AgentSession) -> AgentSession:
    session.max_budget_usd_micros = 100
    await session.asave(update_fields=["max_budget_usd_micros"])
    return session


async def test_the_call_after_the_last_one_is_refused(
    session_caller: Caller, demo: DemoServer, poor: AgentSession
) -> None:
    session_caller.open(upstream(demo.url))
    dear = request("demo: usage input 10 output 50000\ndemo: say dear")
    first = await session_caller.post(dear)

    # At once: what the first one cost is known before the second is judged.
    second = await session_caller.post(dear)

    assert first.status_code == 200
    assert second.status_code == 402
    assert second.headers["x-should-retry"] == "false"
    assert second.json()["error"]["type"] == "billing_error"
    assert "is used up" in second.json()["error"]["message"]
    (trouble,) = session_caller.troubles
    assert (trouble.kind, trouble.is_hopeless) == ("budget", True)
    assert len(demo.state.model_calls) == 1
    assert await sync_to_async(CostEntry.objects.count)() == 1


async def test_calls_at_once_are_all_refused(
    session_caller: Caller, demo: DemoServer, poor: AgentSession
) -> None:
    await CostEntry.objects.acreate(
        session=poor, message_id="before", model="m", usd_micros=100
    )
    poor.cost_usd_micros = 100
    await poor.asave(update_fields=["cost_usd_micros"])
    session_caller.open(upstream(demo.url))

    agents: list[dict[str, Any]] = [{}, {"x_claude_code_agent_id": "agent-1"}]
    answers = [await session_caller.post(**headers) for headers in agents]

    assert [answer.status_code for answer in answers] == [402, 402]
    assert demo.state.model_calls == []


async def test_counting_tokens_costs_nothing_and_is_let_through(
    session_caller: Caller, demo: DemoServer, poor: AgentSession
) -> None:
    poor.cost_usd_micros = 100
    await poor.asave(update_fields=["cost_usd_micros"])
    session_caller.open(upstream(demo.url))

    answer = await session_caller.post(path="/v1/messages/count_tokens")

    assert answer.status_code == 200
