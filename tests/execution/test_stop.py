"""Stop, in every state of a turn: no process is left, nothing written is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agents.conf import conf
from agents.demo.server import DemoServer
from agents.execution.client import GRACE_SECONDS
from agents.execution.engine import Engine
from agents.execution.processes import find_marked
from agents.models import Run, User
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.runs import RunState, StopReason
from agents.models.sessions import SessionStatus

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli

Override = Callable[..., None]


async def stopped(chat: Chat, count: int = 1) -> Run:
    """Stop, and look for processes at the very moment the run says it is over."""
    await chat.stop()
    run = await chat.finished(count)
    assert find_marked(chat.session.pk) == []
    assert run.stop_reason == StopReason.CANCELLED
    assert (await chat.reload()).status == SessionStatus.STOPPED
    assert not any(row.is_streaming for row in await chat.rows())
    return run


async def test_while_it_writes_the_half_is_kept_and_remembered(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    prompt = "demo: hold stop-writing after 3 words"
    chat = await Chat.launch(alice, prompt)
    partial = await chat.writing("cedar-3")
    await stopped(chat)

    await in_thread(partial.refresh_from_db)
    assert partial.is_interrupted
    assert partial.text.split() == ["amber-1", "birch-2", "cedar-3"]
    assert [kind for kind, _ in await chat.notices()] == ["stopped"]

    await chat.send("say: and on")
    run = await chat.finished(2)

    assert run.success
    assert await chat.prompts(demo) == [prompt, "say: and on"]
    assert "cedar-3" in str((await chat.requests(demo))[-1].messages)


async def test_a_running_command_and_what_hides_from_it_end(
    engine: Engine, alice: User
) -> None:
    command = (
        "trap '' TERM; (setsid sleep 1001 &) ; touch started; echo begun; sleep 1002"
    )
    chat = await Chat.launch(
        alice, f"demo: tool Bash {json.dumps({'command': command})}",
        security_mode="full",
    )  # fmt: skip
    await until(lambda: chat.file("started").exists())
    assert find_marked(chat.session.pk)
    await stopped(chat)

    assert [row.outcome for row in await chat.results()] == [ToolOutcome.CANCELLED]


async def test_while_the_model_is_silent(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "demo: say once\ndemo: stall")
    await in_thread(
        demo.state.wait_for,
        lambda state: "demo: stall" in str(state.model_calls[-1:]),
    )
    await stopped(chat)

    asked = (await chat.requests(demo))[-1]
    await until(lambda: asked.outcome == "hung up")


async def test_while_the_cli_waits_to_try_again(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(alice, "demo: error 429 retry-after 30")
    await chat.notice("retry")
    await stopped(chat)


async def test_while_the_cli_starts(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(alice, "say: never")
    await until(lambda: find_marked(chat.session.pk))
    await stopped(chat)

    assert [row.role for row in await chat.rows()] == [
        MessageRole.USER,
        MessageRole.SYSTEM,
    ]


async def test_in_the_queue_and_twice(
    engine: Engine, alice: User, override_conf: Override, demo: DemoServer
) -> None:
    override_conf(max_runs_per_process=1)
    first = await Chat.launch(alice, "demo: hold stop-queue after 1 words")
    await first.writing()
    second = await Chat.launch(alice, "say: never")
    assert (await second.reload()).status == SessionStatus.QUEUED
    await stopped(second)
    await asyncio.gather(first.stop(), first.stop())
    run = await first.finished()

    assert run.stop_reason == StopReason.CANCELLED
    assert [kind for kind, _ in await first.notices()] == ["stopped"]
    assert await second.requests(demo) == []


async def test_a_lost_ring_of_stop_is_seen_at_the_next_look(
    engine: Engine, alice: User, override_conf: Override, settings: Any
) -> None:
    override_conf(control_poll_seconds=0.2)
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "tests.execution.deaf_layer.DeafLayer"}
    }
    chat = await Chat.launch(alice, "demo: hold stop-deaf after 3 words")
    await chat.writing("cedar-3")
    await stopped(chat)


async def test_a_process_that_answers_nothing_is_ended_all_the_same(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(alice, "demo: hold stop-frozen after 3 words")
    partial = await chat.writing("cedar-3")
    for pid in find_marked(chat.session.pk):
        os.kill(pid, signal.SIGSTOP)
    await stopped(chat)

    await in_thread(partial.refresh_from_db)
    assert partial.is_interrupted


def test_what_stop_waits_for_adds_up_to_less_than_two_seconds() -> None:
    assert conf().interrupt_timeout_seconds + GRACE_SECONDS <= 1.5


async def test_what_was_typed_meanwhile_waits_for_a_word(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "demo: hold stop-queued after 3 words")
    await chat.writing("cedar-3")
    await chat.send("say: typed meanwhile")
    await stopped(chat)

    assert (await chat.reload()).queue_paused
    assert await in_thread(chat.session.messages.queued().count) == 1


async def test_the_end_of_the_server_keeps_what_was_written(
    start_engine: Callable[[], Awaitable[Engine]], alice: User, demo: DemoServer
) -> None:
    before = set(asyncio.all_tasks())
    engine = await start_engine()
    writing = await Chat.launch(alice, "demo: hold stop-server after 3 words")
    asking = await Chat.launch(alice, "write the file a.txt with the text hello")
    starting = await Chat.launch(alice, "say: hello")
    partial = await writing.writing("cedar-3")
    approval = await asking.pending()
    del starting
    await engine.stop()

    assert find_marked(writing.session.pk) + find_marked(asking.session.pk) == []
    await in_thread(partial.refresh_from_db)
    assert partial.is_interrupted
    assert partial.text.endswith("cedar-3")
    assert await in_thread(Run.objects.live().count) == 0
    parked = await in_thread(Run.objects.get, session=asking.session)
    assert parked.state == RunState.PARKED
    assert (await asking.reload()).status == SessionStatus.WAITING_APPROVAL
    assert await asking.results() == []
    await in_thread(approval.refresh_from_db)
    assert approval.status == "pending"
    assert left_over(before) == []

    await asking.decide(is_approved=True)
    await start_engine()
    run = await asking.finished()

    assert run.success, run.error_text
    assert asking.file("a.txt").read_text().strip() == "hello"
    assert await in_thread(asking.session.approvals.count) == 1


def left_over(before: set[asyncio.Task[object]]) -> list[str]:
    """Tasks of ours that outlive the engine which started them."""
    here = asyncio.current_task()
    return sorted(
        task.get_name()
        for task in asyncio.all_tasks()
        if task not in before and task is not here and not task.done()
    )
