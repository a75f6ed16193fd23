"""The main path through the real engine: stream, approve, deny, edit, stop."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.demo.server import DemoServer
from agents.execution.engine import Engine
from agents.execution.processes import find_marked
from agents.models import User
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.runs import RunState, StopReason
from agents.models.sessions import SessionStatus

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli


async def test_it_answers_and_remembers(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(alice, "say: a first answer")
    run = await chat.finished()

    assert (run.stop_reason, run.error_text) == (StopReason.NO_TOOL_CALLS, "")
    assert run.success
    rows = await chat.rows()
    assert [(row.role, row.text) for row in rows] == [
        (MessageRole.USER, "say: a first answer"),
        (MessageRole.ASSISTANT, "a first answer"),
    ]
    assert not rows[1].is_streaming
    assert (await chat.reload()).status == SessionStatus.COMPLETED

    await chat.send("what did I say before?")
    await chat.finished(2)

    assert "say: a first answer" in (await chat.rows())[-1].text


async def test_a_write_waits_for_approval(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(alice, "write the file hello.txt with the text Hello")
    approval = await chat.pending()
    file = Path(chat.session.cwd) / "hello.txt"

    assert approval.tool_name == "Write"
    assert approval.tool_input["content"].strip() == "Hello"
    assert (await chat.reload()).status == SessionStatus.WAITING_APPROVAL
    assert not file.exists()

    await chat.decide(is_approved=True)
    run = await chat.finished()

    assert run.success
    assert file.read_text().strip() == "Hello"
    results = [row for row in await chat.rows() if row.role == MessageRole.TOOL_RESULT]
    assert [row.outcome for row in results] == [ToolOutcome.OK]
    assert (await chat.reload()).cost_usd_micros > 0


async def test_a_denial_reaches_the_model_in_the_persons_words(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "write the file no.txt with the text x")
    await chat.decide(is_approved=False, message="Use another name, please.")
    run = await chat.finished()

    assert run.success
    assert not (Path(chat.session.cwd) / "no.txt").exists()
    assert "Use another name, please." in str(demo.state.requests[-1].messages)


async def test_an_edited_input_is_what_runs(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "write the file e.txt with the text before")
    approval = await chat.pending()
    edited = {**approval.tool_input, "content": "after"}
    await chat.decide(is_approved=True, updated_input=edited)
    await chat.finished()

    assert (Path(chat.session.cwd) / "e.txt").read_text() == "after"
    assert "edited the input" in str(demo.state.requests[-1].messages)


async def test_stop_keeps_the_partial_text_and_ends_every_process(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(alice, "demo: stream 2000 words at 40/s")
    partial = await until(
        lambda: (
            chat.session.messages.filter(role=MessageRole.ASSISTANT, is_streaming=True)
            .exclude(text="")
            .first()
        )
    )
    from agents.domain.runs import stop_agent

    await in_thread(stop_agent, chat.session)
    run = await chat.finished()

    assert run.stop_reason == StopReason.CANCELLED
    await in_thread(partial.refresh_from_db)
    assert partial.is_interrupted
    assert partial.text.strip()
    assert not find_marked(chat.session.pk)
    assert run.state == RunState.FINISHED
