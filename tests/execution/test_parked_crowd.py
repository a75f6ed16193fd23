"""Two hundred agents that wait for a person: rows, and not one process."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agents.domain import runs
from agents.execution.engine import Engine
from agents.execution.processes import find_marked
from agents.models import AgentSession, ApprovalRequest, Run, User
from agents.models.messages import ToolOutcome
from agents.models.runs import RunState
from agents.models.sessions import SessionStatus
from tests import factories

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli

CROWD = 197
REAL = 3
COMMAND = {"command": "echo ran >> log.txt"}
TASK = f"demo: tool Bash {json.dumps(COMMAND)}\ndemo: say done"


def park_one(user: User) -> AgentSession:
    """As a turn parks whose process went away in the middle of its call."""
    session = factories.make_session(user, TASK)
    run = factories.start_turn(session)
    factories.ask_approval(run, f"toolu_{session.pk}", "Bash", COMMAND)
    assert runs.park_run(run)
    return session


def child_processes() -> set[int]:
    """The children of this process, in which the engine runs."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    found = [(task / "children").read_text().split() for task in tasks.iterdir()]
    return {int(pid) for pids in found for pid in pids}


async def test_two_hundred_parked_approvals_hold_no_process(
    alice: User,
    start_engine: Callable[[], Awaitable[Engine]],
    override_conf: Callable[..., None],
) -> None:
    crowd = await in_thread(lambda: [park_one(alice) for _ in range(CROWD)])
    before = child_processes()
    await start_engine()
    override_conf(approval_hot_seconds=0.1)
    real = [await Chat.launch(alice, TASK) for _ in range(REAL)]
    parked = Run.objects.filter(state=RunState.PARKED)
    await until(lambda: parked.count() == CROWD + REAL)
    await until(lambda: not any(find_marked(chat.session.pk) for chat in real))

    assert child_processes() - before == set()
    assert await in_thread(ApprovalRequest.objects.pending().count) == CROWD + REAL
    waiting = AgentSession.objects.filter(status=SessionStatus.WAITING_APPROVAL)
    assert await in_thread(waiting.count) == CROWD + REAL

    override_conf(approval_hot_seconds=600)
    chosen = [*real, *(Chat(session, alice) for session in crowd[:REAL])]
    for chat in chosen:
        await chat.decide(is_approved=True)
    ended = [await chat.finished() for chat in chosen]

    assert [run.error_text for run in ended if not run.success] == []
    assert await in_thread(parked.count) == CROWD + REAL - len(chosen)
    for chat in chosen:
        assert chat.file("log.txt").read_text() == "ran\n"
        ran = [row for row in await chat.results() if row.outcome == ToolOutcome.OK]
        assert len(ran) == 1
    assert not any(Chat(each, alice).file("log.txt").exists() for each in crowd[REAL:])
