"""Steps and time of a turn on the real engine."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from agents.demo.server import DemoServer
from agents.domain import sessions
from agents.execution.engine import Engine
from agents.models import User
from agents.models.runs import StopReason
from agents.models.sessions import SessionStatus

from .conftest import Chat, in_thread

pytestmark = pytest.mark.cli

Override = Callable[..., None]


def script(*lines: str) -> str:
    return "\n".join(f"demo: {line}" for line in lines)


def bash(command: str) -> str:
    return f"tool Bash {json.dumps({'command': command})}"


async def test_low_effort_takes_five_steps_and_can_be_continued(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    calls = [bash(f"touch step-{number}") for number in range(1, 8)]
    chat = await Chat.launch(
        alice, script(*calls, "say done"), effort="low", security_mode="full"
    )
    run = await chat.finished()

    assert (run.stop_reason, run.success) == (StopReason.MAX_STEPS, False)
    assert (run.steps, run.max_steps) == (5, 5)
    assert chat.file("step-5").exists()
    assert not chat.file("step-6").exists()
    assert len(await chat.requests(demo)) == 5
    assert (await chat.notices())[-1][0] == "interrupted"
    assert (await chat.reload()).status == SessionStatus.STOPPED

    await chat.go_on()
    again = await chat.finished(2)

    assert again.success, again.error_text


@pytest.mark.parametrize("limit", [1, 2])
async def test_an_explicit_limit_overrides_the_effort(
    engine: Engine, alice: User, limit: int
) -> None:
    calls = [bash(f"touch step-{number}") for number in range(1, 4)]
    chat = await Chat.launch(
        alice,
        script(*calls, "say done"),
        effort="max",
        max_steps=limit,
        security_mode="full",
    )
    run = await chat.finished()

    assert (run.stop_reason, run.steps) == (StopReason.MAX_STEPS, limit)
    assert chat.file(f"step-{limit}").exists()
    assert not chat.file(f"step-{limit + 1}").exists()


async def test_a_last_answer_within_the_limit_is_a_success(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(
        alice,
        script(bash("touch one"), "say done"),
        max_steps=2,
        security_mode="full",
    )
    run = await chat.finished()

    assert (run.stop_reason, run.steps) == (StopReason.NO_TOOL_CALLS, 2)


async def test_our_own_counter_holds_where_the_clis_does_not(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    """A limit that was lowered after the process began is ours alone to keep."""
    chat = await Chat.launch(
        alice,
        script("hold limit-lowered", bash("touch one"), bash("touch two"), "say done"),
        max_steps=20,
        security_mode="full",
    )
    await in_thread(demo.state.wait_until_held, "limit-lowered")
    turn = next(iter(engine.supervisor._turns.values()))
    turn.run.session.max_steps = 1
    demo.state.release("limit-lowered")
    run = await chat.finished()

    assert (run.stop_reason, run.steps) == (StopReason.MAX_STEPS, 1)
    assert not chat.file("two").exists()


async def test_a_turn_ends_when_its_time_is_over(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(low_effort_seconds=0.05)
    chat = await Chat.launch(
        alice, script("say begun", "hold time-is-over"), effort="low"
    )
    run = await chat.finished()

    assert (run.stop_reason, run.success) == (StopReason.TIMEOUT, False)
    notices = await chat.notices()
    assert [kind for kind, _ in notices] == ["interrupted"]
    assert "time is over" in notices[0][1]

    override_conf(low_effort_seconds=600)
    # A prompt that was not heard in that time is said again before the next one.
    demo.state.release("time-is-over")
    await chat.send("say: there is time again")
    again = await chat.finished(2)
    assert again.success


async def test_the_time_of_a_question_does_not_count(
    engine: Engine, alice: User, override_conf: Override
) -> None:
    chat = await Chat.launch(
        alice, script(bash("touch later"), "say done"), effort="low"
    )
    await chat.pending()
    turn = next(iter(engine.supervisor._turns.values()))
    waited = turn.clock.worked_seconds
    turn.clock.now = lambda: 1e9  # ages pass while nobody decides
    assert turn.clock.worked_seconds == waited

    turn.clock.now = type(turn.clock)().now
    await chat.decide(is_approved=True)
    run = await chat.finished()
    assert run.success


async def test_a_raised_effort_binds_the_next_turn(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(alice, "say: one", effort="low")
    await chat.finished()
    await in_thread(sessions.update_session, chat.session, alice, effort="high")
    await chat.send("say: two")
    run = await chat.finished(2)

    assert run.max_steps == 50
