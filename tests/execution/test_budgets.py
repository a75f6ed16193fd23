"""Budgets on the real engine: a warning, the end, the question, and going on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.demo.server import DemoServer
from agents.domain import budgets, sessions
from agents.execution.engine import Engine
from agents.models import AgentSession, User
from agents.models.approvals import ApprovalKind, ApprovalStatus
from agents.models.runs import RunState, StopReason
from agents.models.sessions import SessionStatus

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli

DOLLAR = 1_000_000
# Of the default model: 15 dollars for a million tokens.
COSTS = {"0.30": "usage input 1 output 20000", "0.83": "usage input 1 output 55000"}


def script(*lines: str) -> str:
    return "\n".join(f"demo: {line}" for line in lines)


def bash(command: str) -> str:
    return f"tool Bash {json.dumps({'command': command})}"


SPENDING = script(
    COSTS["0.83"],
    bash("touch one"),
    COSTS["0.30"],
    bash("touch two"),
    bash("touch three"),
    "say done",
)


async def warnings(chat: Chat) -> list[dict[str, Any]]:
    def look() -> list[dict[str, Any]]:
        events = chat.session.events.filter(type="agent:budget_warning")
        return list(events.order_by("seq").values_list("data", flat=True))

    return await in_thread(look)


async def parked(session: AgentSession) -> None:
    await until(lambda: session.runs.filter(state=RunState.PARKED).first())


@pytest.mark.parametrize("scope", ["run", "session", "user", "site"])
async def test_it_warns_once_stops_asks_and_goes_on(
    engine: Engine, alice: User, demo: DemoServer, scope: str
) -> None:
    if scope in ("user", "site"):
        whose = alice if scope == "user" else None
        await in_thread(budgets.set_limit, DOLLAR, "month", actor=alice, user=whose)
    column = {"run": "run_budget_usd_micros", "session": "max_budget_usd_micros"}
    config = {column[scope]: DOLLAR} if scope in column else {}
    chat = await Chat.launch(alice, SPENDING, security_mode="full", **config)

    approval = await chat.pending()
    await parked(chat.session)

    assert approval.kind == ApprovalKind.BUDGET
    assert approval.tool_input["scope"] == scope
    assert approval.tool_input["raises_to_usd_micros"] == 2 * DOLLAR
    assert "is used up" in approval.reason
    assert (await chat.reload()).status == SessionStatus.WAITING_APPROVAL
    (warned,) = await warnings(chat)
    assert (warned["scope"], warned["threshold"]) == (scope, 80)
    assert 80 <= warned["percent"] < 100
    assert [kind for kind, _ in await chat.notices()] == ["budget"]
    assert chat.file("two").exists()
    assert not chat.file("three").exists()
    assert len(await chat.requests(demo)) == 2

    await chat.decide(is_approved=True)
    run = await chat.finished()

    assert run.success, (run.stop_reason, run.error_text)
    assert chat.file("three").exists()
    assert (await chat.rows())[-1].text
    assert len(await warnings(chat)) == 1


async def test_a_denied_raise_ends_the_run(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice, SPENDING, security_mode="full", max_budget_usd_micros=DOLLAR
    )
    await chat.pending()
    await parked(chat.session)
    await chat.decide(is_approved=False)
    run = await chat.finished()

    assert (run.stop_reason, run.success) == (StopReason.BUDGET_EXCEEDED, False)
    assert not chat.file("three").exists()
    assert len(await chat.requests(demo)) == 2
    assert (await chat.reload()).status == SessionStatus.STOPPED


async def test_a_last_answer_over_the_budget_stands_and_the_next_turn_asks(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice,
        script("usage input 1 output 70000", "say dear"),
        max_budget_usd_micros=DOLLAR,
    )
    first = await chat.finished()
    await chat.send("say: the second")
    await chat.pending()
    await parked(chat.session)

    assert first.success
    assert len(await chat.requests(demo)) == 1

    await chat.decide(is_approved=True)
    second = await chat.finished(2)
    assert second.success
    assert (await chat.rows())[-1].text == "the second"


async def test_a_sub_agent_counts_and_is_stopped(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    inner = script(
        COSTS["0.83"], bash("touch one"), COSTS["0.30"], bash("touch two"), "say in"
    )
    chat = await Chat.launch(
        alice,
        script(f"agent {json.dumps(inner)}", "say out"),
        security_mode="full",
        max_budget_usd_micros=DOLLAR,
    )
    approval = await chat.pending()
    await parked(chat.session)

    assert approval.kind == ApprovalKind.BUDGET
    assert len(await warnings(chat)) == 1


async def test_an_invoked_session_spends_its_parents_budget(
    engine: Engine, alice: User
) -> None:
    other = await Chat.launch(alice, "say: I know things")
    await other.finished()
    prompt = script("usage input 1 output 70000", "say dear")
    asked = {"session_id": str(other.session.pk), "message": prompt}
    chat = await Chat.launch(
        alice,
        script(
            f"tool mcp__openswarm-invoke-agent__InvokeAgent {json.dumps(asked)}",
            "say after",
        ),
        security_mode="full",
        max_budget_usd_micros=DOLLAR,
    )
    approval = await chat.pending()
    await parked(chat.session)

    child = await in_thread(lambda: chat.session.children.get())
    assert child.cost_usd_micros > DOLLAR
    assert approval.tool_input["scope"] == "session"
    await chat.decide(is_approved=True)
    run = await chat.finished()
    assert run.success


async def test_a_limit_that_is_raised_in_the_settings_lets_it_go_on(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(
        alice, SPENDING, security_mode="full", max_budget_usd_micros=DOLLAR
    )
    approval = await chat.pending()
    await parked(chat.session)
    await in_thread(
        sessions.update_session,
        chat.session,
        alice,
        max_budget_usd_micros=5 * DOLLAR,
    )
    run = await chat.finished()

    await in_thread(approval.refresh_from_db)
    assert approval.status == ApprovalStatus.APPROVED
    assert run.success


async def test_stop_ends_a_run_that_waits_for_its_budget(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(
        alice, SPENDING, security_mode="full", max_budget_usd_micros=DOLLAR
    )
    await chat.pending()
    await parked(chat.session)
    await chat.stop()
    run = await chat.finished()

    assert run.stop_reason == StopReason.CANCELLED
    assert (await chat.reload()).status == SessionStatus.STOPPED
