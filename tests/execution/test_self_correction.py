"""Failures of tools on the real engine: advice, a failed step, the circuit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.demo.server import DemoServer
from agents.execution.engine import Engine
from agents.models import User
from agents.models.messages import Message, MessageRole, ToolOutcome
from agents.models.runs import StopReason
from agents.models.sessions import SessionStatus

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli


def script(*lines: str) -> str:
    return "\n".join(f"demo: {line}" for line in lines)


def bash(command: str) -> str:
    return f"tool Bash {json.dumps({'command': command})}"


def failing(count: int) -> list[str]:
    """Calls that fail, each in words of its own."""
    return [bash(f"ls /missing-{number}") for number in range(count)]


async def told(chat: Chat, wire: str) -> list[dict[str, Any]]:
    def look() -> list[dict[str, Any]]:
        events = chat.session.events.filter(type=wire).order_by("seq")
        return list(events.values_list("data", flat=True))

    return await in_thread(look)


async def outcomes(chat: Chat) -> list[str]:
    return [row.outcome for row in await chat.results()]


async def test_three_failures_are_corrected_and_the_fourth_fails_the_step(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice,
        script(*failing(4), bash("echo never"), "say I give up"),
        security_mode="full",
    )
    run = await chat.finished()

    corrections = await told(chat, "agent:correction")
    assert [(each["cycle"], each["tool_name"]) for each in corrections] == [
        (1, "Bash"),
        (2, "Bash"),
        (3, "Bash"),
    ]
    (failed,) = await told(chat, "agent:step_failed")
    assert (failed["step"], failed["failures"]) == (4, 4)
    steps = await told(chat, "agent:step_complete")
    assert [each["status"] for each in steps] == ["ok"] * 3 + ["failed", "ok", "ok"]
    assert [each["step"] for each in await told(chat, "agent:step_start")] == [
        *range(1, 7)
    ]
    assert await outcomes(chat) == [ToolOutcome.ERROR] * 4 + [ToolOutcome.DENIED]
    assert "not run any more" in (await chat.results())[-1].text
    assert (run.stop_reason, run.success) == (StopReason.NO_TOOL_CALLS, False)
    assert [kind for kind, _ in await chat.notices()] == ["step_failed"]
    assert (await chat.reload()).status == SessionStatus.ERROR
    seen = json.dumps([call.messages for call in await chat.requests(demo)])
    for words in ("Correction 1 of 3", "Correction 3 of 3", "Stop retrying this tool"):
        assert words in seen
    assert "Correction 4" not in seen


async def test_a_success_begins_the_count_anew(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(
        alice,
        script(*failing(3), bash("echo fine"), *failing(2), "say done"),
        security_mode="full",
    )
    run = await chat.finished()

    cycles = [each["cycle"] for each in await told(chat, "agent:correction")]
    assert cycles == [1, 2, 3, 1, 2]
    assert await told(chat, "agent:step_failed") == []
    assert run.success


async def test_a_success_after_a_failed_step_makes_the_run_good(
    engine: Engine, alice: User
) -> None:
    read = 'tool Glob {"pattern": "*"}'
    chat = await Chat.launch(
        alice, script(*failing(4), read, "say another way"), security_mode="full"
    )
    run = await chat.finished()

    assert len(await told(chat, "agent:step_failed")) == 1
    assert run.success
    assert await chat.notices() == []


async def test_a_new_prompt_begins_with_no_chain(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(
        alice, script(*failing(3), "say one"), security_mode="full"
    )
    await chat.finished()
    await chat.send(script(*failing(2), "say two"))
    await chat.finished(2)

    cycles = [each["cycle"] for each in await told(chat, "agent:correction")]
    assert cycles == [1, 2, 3, 1, 2]


async def test_denials_are_no_failures(engine: Engine, alice: User) -> None:
    calls = [bash(f"touch denied-{number}") for number in range(5)]
    chat = await Chat.launch(alice, script(*calls, "say all denied"))
    for _ in calls:
        await chat.decide(is_approved=False)
    run = await chat.finished()

    assert await told(chat, "agent:correction") == []
    assert await outcomes(chat) == [ToolOutcome.DENIED] * 5
    assert run.success


async def test_an_open_circuit_leaves_a_call_to_the_person_who_is_asked(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(
        alice, script(*failing(4), bash("touch allowed"), "say it worked")
    )
    for _ in range(5):
        await chat.decide(is_approved=True)
    run = await chat.finished()

    assert chat.file("allowed").exists()
    assert run.success


async def test_sub_agents_are_counted_apart(engine: Engine, alice: User) -> None:
    inner = script(*failing(2), "say inside")
    chat = await Chat.launch(
        alice,
        script(*failing(3), f"agent {json.dumps(inner)}", "say outside"),
        security_mode="full",
    )
    run = await chat.finished()

    corrections = await told(chat, "agent:correction")
    main = [each["cycle"] for each in corrections if not each["agent_id"]]
    inside = [each["cycle"] for each in corrections if each["agent_id"]]
    assert (main, inside) == ([1, 2, 3], [1, 2])
    assert await told(chat, "agent:step_failed") == []
    assert run.success


async def test_an_input_that_the_cli_refuses_counts_as_a_failure(
    engine: Engine, alice: User
) -> None:
    calls = [f'tool Read {{"wrong": {number}}}' for number in range(2)]
    chat = await Chat.launch(alice, script(*calls, "say hm"), security_mode="full")
    await chat.finished()

    cycles = [each["cycle"] for each in await told(chat, "agent:correction")]
    assert cycles == [1, 2]


async def test_the_same_failing_call_is_refused_and_then_ends_the_turn(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice, script(*[bash("ls /missing")] * 5, "say never"), security_mode="full"
    )
    run = await chat.finished()

    refused = [ToolOutcome.DENIED] * 2
    assert await outcomes(chat) == [ToolOutcome.ERROR] * 3 + refused
    assert "has failed 3 times in a row" in (await chat.results())[-2].text
    assert (run.stop_reason, run.success) == (StopReason.TOO_MANY_FAILURES, False)
    assert [kind for kind, _ in await chat.notices()] == ["interrupted"]
    assert len(await chat.requests(demo)) == 5


async def test_the_card_of_a_failed_call_says_what_was_made_of_it(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(alice, script(*failing(1), "say hm"), security_mode="full")
    await chat.finished()

    def noted() -> Message | None:
        return chat.session.messages.filter(
            role=MessageRole.TOOL_RESULT, content__correction__cycle=1
        ).first()

    row = await until(noted)
    assert row.content["correction"]["kind"] == "fixable"
