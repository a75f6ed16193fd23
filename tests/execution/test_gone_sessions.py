"""A session may be deleted at any moment of its turn; nobody need hear of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.domain import runs
from agents.errors import LeaseLostError
from agents.execution import preparation
from agents.execution.client_pool import ClientPool
from agents.execution.confinement import JailStatus
from agents.execution.run_task import RunTask
from agents.execution.snapshots import after_turn, before_turn
from agents.execution.turn import Turn
from agents.gateway.server import Gateway
from agents.models import AgentSession, Run, User
from tests import factories

from .conftest import in_thread

NO_JAIL = JailStatus(False, "not asked for here")


@pytest.fixture
async def turn(alice: User) -> Turn:
    def begin() -> Run:
        return factories.start_turn(factories.make_session(alice))

    return Turn(await in_thread(begin), jailed=False)


@pytest.fixture
def task(turn: Turn, tmp_path: Path) -> RunTask:
    pool = ClientPool(Gateway(folder=tmp_path), NO_JAIL)
    return RunTask(turn, pool, NO_JAIL)


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.message for each in caplog.records if each.levelno >= logging.ERROR]


async def test_before_its_turn_begins(
    turn: Turn, task: RunTask, caplog: pytest.LogCaptureFixture
) -> None:
    await in_thread(lambda: AgentSession.objects.all().delete())

    await task.run()

    assert complaints(caplog) == []
    assert not await in_thread(Run.objects.exists)


async def test_while_its_turn_is_prepared(turn: Turn) -> None:
    """Its rows are read, and gone when the next statement writes."""
    await in_thread(lambda: AgentSession.objects.all().delete())

    with pytest.raises(LeaseLostError):
        await in_thread(preparation._begin_anew, turn.run.branch)


@pytest.mark.parametrize("record", [before_turn, after_turn])
async def test_while_its_files_are_recorded(
    turn: Turn, caplog: pytest.LogCaptureFixture, record: Callable[[Turn], object]
) -> None:
    await in_thread(lambda: AgentSession.objects.all().delete())

    with pytest.raises(LeaseLostError):
        await record(turn)  # type: ignore[misc]  # all of them are coroutines

    assert complaints(caplog) == []


async def test_a_lease_of_its_run_is_lost(turn: Turn) -> None:
    await in_thread(lambda: AgentSession.objects.all().delete())

    with pytest.raises(LeaseLostError):
        await in_thread(runs.extend_lease, turn.run)
