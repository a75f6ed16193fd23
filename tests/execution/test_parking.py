"""Parking: a call outlives its process, and is taken up again once, as decided."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from agents.demo.server import DemoServer
from agents.domain.accounts import preferences_of
from agents.domain.queries.transcript import load_transcript
from agents.execution.engine import Engine
from agents.execution.processes import find_marked
from agents.models import Run, User
from agents.models.approvals import ApprovalStatus
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.runs import RunState, StopReason
from agents.models.sessions import SessionStatus
from agents.models.users import OnTimeout
from agents.workspaces.folders import session_home

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli


@pytest.fixture
def short_wait(override_conf: Any) -> None:
    override_conf(approval_hot_seconds=0.2, approval_poll_seconds=0.1)


async def parked(chat: Chat) -> Run:
    run = await until(lambda: chat.session.runs.filter(state=RunState.PARKED).first())
    assert not find_marked(chat.session.pk)
    return run


async def test_a_parked_call_runs_once_when_it_is_approved(
    short_wait: None, engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "write the file late.txt with the text Late")
    run = await parked(chat)
    file = Path(chat.session.cwd) / "late.txt"
    assert run.deferred_tool_use_id
    assert (await chat.reload()).status == SessionStatus.WAITING_APPROVAL
    assert not file.exists()
    await in_thread(shutil.rmtree, session_home(chat.session.pk))

    edited = {**(await chat.pending()).tool_input, "content": "Edited"}
    await chat.decide(is_approved=True, updated_input=edited)
    run = await chat.finished()

    assert (run.stop_reason, run.error_text) == (StopReason.NO_TOOL_CALLS, "")
    assert file.read_text() == "Edited"
    results = [row for row in await chat.rows() if row.role == MessageRole.TOOL_RESULT]
    assert [row.outcome for row in results] == [ToolOutcome.OK]
    calls = [row for row in await chat.rows() if row.role == MessageRole.TOOL_CALL]
    assert [call.tool_use_id for call in calls] == [results[0].tool_use_id]
    transcript = await in_thread(load_transcript, await chat.reload(), alice)
    assert "Continue from where" not in str(
        [item.message.text for item in transcript.items]
    )


async def test_words_of_denial_reach_the_model_after_the_parking(
    short_wait: None, engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "write the file no.txt with the text No")
    await parked(chat)

    await chat.decide(is_approved=False, message="Not today, thanks.")
    run = await chat.finished()

    assert run.success
    assert not (Path(chat.session.cwd) / "no.txt").exists()
    assert "Not today, thanks." in str(demo.state.model_calls[-1].messages)


async def test_a_question_parks_and_is_answered_later(
    short_wait: None, engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "ask me a question")
    await parked(chat)
    approval = await chat.pending()
    question = approval.tool_input["questions"][0]
    answer = question["options"][0]["label"]

    await chat.decide(
        is_approved=True,
        updated_input={
            **approval.tool_input,
            "answers": {question["question"]: answer},
        },
    )
    run = await chat.finished()

    assert run.success
    assert answer in str(demo.state.model_calls[-1].messages)


async def test_a_sub_agents_call_takes_the_grant_route(
    short_wait: None, engine: Engine, alice: User
) -> None:
    task = 'start a sub-agent to "write the file sub.txt with the text Sub"'
    chat = await Chat.launch(alice, task)
    approval = await chat.decide(is_approved=True)  # the Agent call itself
    assert approval.tool_name == "Agent"
    run = await until(
        lambda: chat.session.runs.filter(
            state=RunState.PARKED,
            approvals__tool_name="Write",
            approvals__status=ApprovalStatus.PENDING,
        ).first()
    )
    assert run.deferred_tool_use_id == ""
    assert not find_marked(chat.session.pk)

    await chat.decide(is_approved=True)
    await until(lambda: (Path(chat.session.cwd) / "sub.txt").exists() or None)


async def test_two_calls_in_one_message_take_the_grant_route(
    short_wait: None,
    override_conf: Any,
    engine: Engine,
    alice: User,
    demo: DemoServer,
) -> None:
    override_conf(
        ask_for_everything=True, approval_hot_seconds=0.2, approval_poll_seconds=0.1
    )
    reads = [f'demo: tool Read {{"file_path": "$CWD/{name}"}}' for name in "ab"]
    chat = await Chat.launch(alice, "\n".join(["demo: parallel", *reads, "demo: end"]))
    for name in "ab":
        chat.file(name).write_text(f"content of {name}")
    run = await parked(chat)
    assert run.deferred_tool_use_id == ""
    assert await in_thread(chat.session.approvals.pending().count) == 2
    await in_thread(shutil.rmtree, session_home(chat.session.pk))

    await chat.decide(is_approved=True)
    await chat.decide(is_approved=False, message="Not this one.")
    run = await chat.finished()

    assert run.success, run.error_text
    sent = str(demo.state.model_calls[-1].messages)
    assert "content of" in sent
    assert "Not this one." in sent
    outcomes = [row.outcome for row in await chat.results()]
    assert outcomes.count(ToolOutcome.OK) == 1


async def test_a_session_may_deny_what_nobody_answers(
    short_wait: None, engine: Engine, alice: User, demo: DemoServer
) -> None:
    preferences = await in_thread(preferences_of, alice)
    preferences.on_timeout = OnTimeout.DENY
    await in_thread(preferences.save)

    chat = await Chat.launch(alice, "write the file t.txt with the text T")
    run = await chat.finished()

    assert run.success
    assert "Approval timed out" in str(demo.state.model_calls[-1].messages)


async def test_a_graceful_stop_parks_and_another_engine_goes_on(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "write the file s.txt with the text S")
    await chat.pending()

    await engine.stop()
    run = await parked(chat)
    assert run.deferred_tool_use_id

    other = Engine()
    await other.start(demo_url=demo.url)
    try:
        await chat.decide(is_approved=True)
        assert (await chat.finished()).success
    finally:
        await other.stop()
    assert (Path(chat.session.cwd) / "s.txt").read_text().strip() == "S"
