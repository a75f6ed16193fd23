"""A server killed in the middle of things, and what the next one makes of it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from agents.demo.server import DemoServer
from agents.domain import runs
from agents.execution.engine import Engine
from agents.execution.processes import find_marked
from agents.models import AgentSession, CostEntry, Run, TranscriptEntry, User
from agents.models.approvals import ApprovalStatus
from agents.models.messages import ToolOutcome
from agents.models.runs import RunState, StopReason
from agents.models.sessions import ACTIVE_STATUSES, SessionStatus

from .conftest import Chat, in_thread, until
from .crashing import Server

pytestmark = pytest.mark.cli

StartEngine = Callable[[], Awaitable[Engine]]
ASK = 'demo: tool Bash {"command": "echo ran >> log.txt"}\ndemo: say the end'


@pytest.fixture
def server(transactional_db: None, demo: DemoServer) -> Iterator[Server]:
    running = Server(demo)
    yield running
    running.kill()


async def test_a_kill_mid_stream_and_one_click_continues(
    server: Server, start_engine: StartEngine, alice: User, demo: DemoServer
) -> None:
    prompt = "demo: hold crash-stream after 3 words\ndemo: say and the rest"
    chat = await Chat.launch(alice, "say: a good beginning")
    await chat.finished()
    await chat.send(prompt)
    partial = await chat.writing("cedar-3")
    await in_thread(server.kill)
    await gone(chat)
    assert await in_thread(runs.reconcile_on_startup) == 1

    run = await chat.finished(2)
    assert (run.stop_reason, run.error_class) == (StopReason.CANCELLED, "interrupted")
    assert (await chat.reload()).status == SessionStatus.STOPPED
    await in_thread(partial.refresh_from_db)
    assert partial.is_interrupted
    assert partial.text.endswith("cedar-3")
    assert [kind for kind, _ in await chat.notices()] == ["interrupted"]

    demo.state.release("crash-stream")
    await start_engine()
    await chat.go_on()
    run = await chat.finished(3)

    assert run.success, run.error_text
    assert await chat.prompts(demo) == [
        "say: a good beginning",
        prompt,
        "Please continue where you left off.",
    ]
    assert (await chat.rows())[-1].text.endswith("and the rest")
    await assert_costs_counted_once(chat, demo)


async def test_a_kill_leaves_no_sub_agent_at_work(
    server: Server, start_engine: StartEngine, alice: User, demo: DemoServer
) -> None:
    inner = json.dumps("demo: hold crash-inside after 3 words")
    task = f"demo: agent {inner}\ndemo: say it came back"
    chat = await Chat.launch(alice, task, security_mode="full")
    guests = chat.session.guests
    child = await until(guests.filter(status=SessionStatus.RUNNING).first)
    await in_thread(demo.state.wait_until_held, "crash-inside")
    await in_thread(server.kill)
    await gone(chat)
    assert await in_thread(runs.reconcile_on_startup) == 1

    await in_thread(child.refresh_from_db)
    assert child.status == SessionStatus.STOPPED
    assert (await chat.reload()).status == SessionStatus.STOPPED

    demo.state.release("crash-inside")
    await start_engine()
    await chat.go_on()
    run = await chat.finished(2)

    assert run.success, run.error_text
    ended = await in_thread(lambda: list(guests.values_list("status", flat=True)))
    assert not {*ended} & {*ACTIVE_STATUSES}
    await assert_costs_counted_once(chat, demo)


@pytest.mark.parametrize("kept", [(), ("queue-operation",)])
async def test_a_kill_before_anything_was_remembered_loses_no_prompt(
    server: Server,
    start_engine: StartEngine,
    alice: User,
    demo: DemoServer,
    kept: tuple[str, ...],
) -> None:
    prompt = f"demo: hold crash-early-{len(kept)} after 3 words"
    chat = await Chat.launch(alice, prompt)
    await chat.writing("cedar-3")
    await in_thread(server.kill)
    await gone(chat)
    # What the CLI wrote last had not reached the database yet.
    await in_thread(TranscriptEntry.objects.exclude(type__in=kept).delete)
    await in_thread(runs.reconcile_on_startup)
    demo.state.release(f"crash-early-{len(kept)}")
    await start_engine()
    await chat.go_on()
    run = await chat.finished(2)

    assert run.success, run.error_text
    assert await chat.prompts(demo) == [
        f"{prompt}\n\nPlease continue where you left off."
    ]


@pytest.mark.parametrize("way", ["approved", "edited", "denied"])
async def test_a_kill_with_an_approval_pending_and_the_answer_afterwards(
    server: Server, start_engine: StartEngine, alice: User, demo: DemoServer, way: str
) -> None:
    chat = await Chat.launch(alice, ASK)
    approval = await chat.pending()
    await in_thread(server.kill)
    await gone(chat)
    await in_thread(runs.reconcile_on_startup)

    parked = await in_thread(Run.objects.get, session=chat.session)
    assert parked.state == RunState.PARKED
    assert (await chat.reload()).status == SessionStatus.WAITING_APPROVAL
    edited = {**approval.tool_input, "command": "echo edited >> log.txt"}
    answers: dict[str, dict[str, Any]] = {
        "approved": {"is_approved": True},
        "edited": {"is_approved": True, "updated_input": edited},
        "denied": {"is_approved": False, "message": "Rather not, it is late."},
    }
    await chat.decide(**answers[way])
    await start_engine()
    run = await chat.finished()

    assert run.success, run.error_text
    assert await in_thread(chat.session.approvals.count) == 1
    await in_thread(approval.refresh_from_db)
    assert approval.consumed_at is not None
    if way == "denied":
        assert not chat.file("log.txt").exists()
        assert approval.status == ApprovalStatus.DENIED
        said = str((await chat.requests(demo))[-1].messages)
        assert "Rather not, it is late." in said
        return
    written = {"approved": "ran\n", "edited": "edited\n"}[way]
    assert chat.file("log.txt").read_text() == written
    assert [r.outcome for r in await chat.results()] == [
        ToolOutcome.CANCELLED,
        ToolOutcome.OK,
    ]
    # Killed before any answer stood in the transcript, the CLI joins both prompts.
    prompts = await chat.prompts(demo)
    assert prompts[0].startswith(ASK)
    assert "\n".join(prompts).count(ASK) == 1


async def test_a_kill_with_a_plan_pending_and_the_approval_afterwards(
    server: Server, start_engine: StartEngine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, 'demo: plan "1. Write made.txt"', mode="plan")
    await chat.pending()
    await in_thread(server.kill)
    await gone(chat)
    await in_thread(runs.reconcile_on_startup)

    await chat.decide(is_approved=True)
    await start_engine()
    run = await chat.finished(2)

    assert run.success, run.error_text
    assert await in_thread(chat.session.approvals.count) == 1
    assert (await chat.reload()).mode == "agent"
    assert "Bash" in (await chat.requests(demo))[-1].tools


async def test_sigterm_parks_and_the_next_server_goes_on(
    server: Server, start_engine: StartEngine, alice: User
) -> None:
    chat = await Chat.launch(alice, ASK)
    await chat.pending()
    code = await in_thread(server.terminate)

    assert code == 0
    assert find_marked(chat.session.pk) == []
    assert await in_thread(runs.reconcile_on_startup) == 0
    await chat.decide(is_approved=True)
    await start_engine()
    run = await chat.finished()
    assert run.success, run.error_text
    assert chat.file("log.txt").read_text() == "ran\n"


async def gone(chat: Chat) -> None:
    await until(lambda: not find_marked(chat.session.pk))


async def assert_costs_counted_once(chat: Chat, demo: DemoServer) -> None:
    entries = await in_thread(
        lambda: list(CostEntry.objects.filter(session=chat.session))
    )
    ids = [entry.message_id for entry in entries]
    assert len(ids) == len(set(ids))
    session: AgentSession = await chat.reload()
    assert session.cost_usd_micros == sum(e.usd_micros or 0 for e in entries)
