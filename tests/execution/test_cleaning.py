"""What a deleted session leaves: in the end nothing, whatever happened on the way."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.conf import data_dir
from agents.domain import lifecycle, sessions
from agents.execution.cleaning import (
    ORPHANED_AFTER_SECONDS,
    Cleaner,
    folders_by_session,
)
from agents.execution.client_pool import ClientPool
from agents.execution.engine import Engine
from agents.execution.processes import find_marked
from agents.models import AgentSession, Message, TranscriptEntry, User
from agents.models.messages import MessageRole
from agents.workspaces.folders import create_workspace, session_home, workspace_of
from tests import factories
from tests.disk import files_holding

from .conftest import Chat, in_thread, until

SECRET = "zebra-crossing-secret-7f3a"


def holding(secret: str) -> list[Path]:
    """Every file below the data folder that holds the text."""
    return files_holding(secret, data_dir())


def write_files(session: AgentSession) -> None:
    (Path(session.cwd) / "notes.txt").write_text(SECRET)
    (session_home(session.pk) / "notes.txt").write_text(SECRET)


def make(alice: User) -> AgentSession:
    session = factories.make_session(alice, SECRET)
    session.runs.update(state="finished")
    write_files(session)
    return session


@pytest.fixture
def cleaner(engine: Engine) -> Cleaner:
    return Cleaner(engine.supervisor.pool)


async def test_a_deletion_leaves_nothing_on_the_disk(
    engine: Engine, alice: User
) -> None:
    session = await in_thread(make, alice)
    assert len(await in_thread(holding, SECRET)) >= 3, "the control"

    await in_thread(sessions.delete_session, session, alice)

    await until(lambda: not holding(SECRET))
    assert not workspace_of(alice.pk, session.pk).exists()


@pytest.mark.cli
async def test_a_session_is_deleted_while_its_agent_writes(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(alice, f"demo: stream 2000 words at 40/s\n{SECRET}")
    await until(
        lambda: (
            Message.objects.filter(role=MessageRole.ASSISTANT, is_streaming=True)
            .exclude(text="")
            .first()
        )
    )
    assert await asyncio.to_thread(find_marked, chat.session.pk), "the control"

    await in_thread(sessions.delete_session, chat.session, alice)

    await until(lambda: not find_marked(chat.session.pk))
    await until(lambda: not holding(SECRET))
    assert not await in_thread(TranscriptEntry.objects.exists)
    assert not await in_thread(AgentSession.objects.exists)
    assert not engine.supervisor.pool.is_busy(chat.session.pk)


@pytest.mark.cli
async def test_an_idle_process_of_a_deleted_session_ends(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(alice, f"say: {SECRET}")
    run = await chat.finished()
    assert run.success, run.error_text
    assert await asyncio.to_thread(find_marked, chat.session.pk), "kept warm"

    await in_thread(sessions.delete_session, chat.session, alice)

    await until(lambda: not find_marked(chat.session.pk))
    await until(lambda: not holding(SECRET))


async def test_what_a_crash_left_is_found_at_the_next_start(
    transactional_db: None, alice: User, start_engine: Callable[..., object]
) -> None:
    session = await in_thread(make, alice)
    branch = await in_thread(session.branches.get)
    await in_thread(sessions.delete_session, session, alice)
    await in_thread(
        TranscriptEntry.objects.create,
        project_key="late",
        sdk_session_id=str(branch.sdk_session_id),
        entry=SECRET,
    )
    assert await in_thread(holding, SECRET), "nobody was there to remove it"

    await start_engine()  # type: ignore[misc]  # a coroutine function

    await until(lambda: not holding(SECRET))
    assert not await in_thread(TranscriptEntry.objects.exists)


async def test_folders_of_a_launch_under_way_are_left_alone(
    cleaner: Cleaner, alice: User
) -> None:
    workspace = await in_thread(create_workspace, alice.pk, uuid.uuid4())

    assert await cleaner.clean()

    assert workspace.exists()


async def test_old_folders_of_nobody_are_removed(cleaner: Cleaner, alice: User) -> None:
    """As when an account was deleted, with all its sessions."""
    workspace = await in_thread(create_workspace, alice.pk, uuid.uuid4())
    old = workspace.stat().st_mtime - ORPHANED_AFTER_SECONDS - 1
    os.utime(workspace, (old, old))

    assert await cleaner.clean()

    assert not workspace.exists()


async def test_a_session_that_is_there_keeps_its_files(
    cleaner: Cleaner, alice: User
) -> None:
    session = await in_thread(make, alice)
    old = 1.0
    os.utime(session.cwd, (old, old))

    assert await cleaner.clean()

    assert (Path(session.cwd) / "notes.txt").read_text() == SECRET


async def test_a_session_in_a_turn_waits_for_its_end(
    engine: Engine, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await in_thread(make, alice)
    monkeypatch.setattr(ClientPool, "is_busy", lambda self, session_id: True)
    await in_thread(sessions.delete_session, session, alice)

    assert not await Cleaner(engine.supervisor.pool).clean()

    assert session.pk in folders_by_session()


async def test_a_listed_folder_is_not_touched(
    cleaner: Cleaner, alice: User, tmp_path: Path
) -> None:
    session = await in_thread(make, alice)
    (tmp_path / "mine.txt").write_text("mine")
    await in_thread(
        AgentSession.objects.filter(pk=session.pk).update,
        cwd=str(tmp_path),
        owns_cwd=False,
    )
    await in_thread(session.refresh_from_db)

    await in_thread(sessions.delete_session, session, alice)
    assert await cleaner.clean()

    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert session.pk not in folders_by_session()


def test_strange_names_are_no_sessions(transactional_db: None, alice: User) -> None:
    folder = create_workspace(alice.pk, uuid.uuid4()).parent / "notes"
    folder.mkdir()

    assert all(isinstance(each, uuid.UUID) for each in folders_by_session())
    assert lifecycle.without_row(set()) == set()
