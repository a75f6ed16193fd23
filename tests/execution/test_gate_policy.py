"""What policy decides, seen from outside: what the model was offered and what ran."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.demo.server import DemoServer
from agents.domain import sessions
from agents.execution.engine import Engine
from agents.models import User
from agents.models.messages import MessageRole, ToolOutcome

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli

Override = Callable[..., None]
INERT = "DeferredToolPlaceholder"  # the CLI's own; it does nothing


def script(*lines: str) -> str:
    return "\n".join(f"demo: {line}" for line in lines)


def in_sub_agent(*lines: str) -> str:
    return f"demo: agent {json.dumps(script(*lines))}"


def write(name: str) -> str:
    return f'tool Write {{"file_path": "$CWD/{name}", "content": "x"}}'


def bash(command: str) -> str:
    return f"tool Bash {json.dumps({'command': command})}"


def tree(chat: Chat) -> list[str]:
    folder = Path(chat.session.cwd)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


async def test_a_read_only_mode_offers_no_tool_that_changes_anything(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice,
        script(write("w.txt"), bash("touch b.txt"), "agent say hi"),
        mode="ask",
        security_mode="full",
    )
    run = await chat.finished()
    requests = await chat.requests(demo)

    assert run.success
    offered = {tool for request in requests for tool in request.tools}
    assert offered - {INERT} == {
        *("Read", "Glob", "Grep", "AskUserQuestion"),
        "mcp__openswarm__complete_task",
    }
    results = await chat.results()
    assert len(results) == 3
    assert all(row.outcome != ToolOutcome.OK for row in results)
    assert tree(chat) == []


async def test_a_mode_that_narrows_mid_turn_binds_the_sub_agent_too(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice,
        script(write("before.txt"))
        + "\n"
        + in_sub_agent("hold narrowed after 1 words", write("inside.txt"))
        + "\n"
        + script(write("after.txt")),
        security_mode="full",
    )
    await in_thread(demo.state.wait_until_held, "narrowed")
    await in_thread(sessions.update_session, chat.session, alice, mode="ask")
    demo.state.release("narrowed")
    run = await chat.finished()

    assert run.success
    assert tree(chat) == ["before.txt"]
    outcomes = [r.outcome for r in await chat.results() if r.tool_name == "Write"]
    assert outcomes == [ToolOutcome.OK, ToolOutcome.DENIED, ToolOutcome.DENIED]


async def test_a_security_mode_changed_mid_turn_binds_at_the_next_call(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice,
        script(bash("touch one"), "hold tightened after 1 words", bash("touch two")),
        security_mode="full",
    )
    await in_thread(demo.state.wait_until_held, "tightened")
    await in_thread(sessions.update_session, chat.session, alice, security_mode="deny")
    demo.state.release("tightened")
    await chat.finished()

    assert tree(chat) == ["one"]
    assert [row.outcome for row in await chat.results()] == [
        ToolOutcome.OK,
        ToolOutcome.DENIED,
    ]


async def test_a_sub_agents_calls_pass_the_gate_and_nest_under_it(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, in_sub_agent(write("sub.txt"), "say all done"))
    agent = await chat.pending()
    assert agent.tool_name == "Agent"
    await chat.decide(is_approved=True)
    inner = await until(chat.session.approvals.filter(tool_name="Write").first)
    assert inner.agent_id
    assert tree(chat) == []
    await chat.decide(is_approved=True)
    run = await chat.finished()
    rows = await chat.rows()

    assert run.success
    assert tree(chat) == ["sub.txt"]
    (spawned,) = [r for r in rows if r.tool_name == "Agent" and r.role == "tool_call"]
    nested = [r for r in rows if r.parent_tool_use_id == spawned.tool_use_id]
    assert [(r.role, r.tool_name) for r in nested if r.tool_name] == [
        (MessageRole.TOOL_CALL, "Write"),
        (MessageRole.TOOL_RESULT, "Write"),
    ]
    assert "all done" in [r.text for r in nested if r.role == MessageRole.ASSISTANT]


async def test_a_denied_sub_agent_call_is_not_run(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, in_sub_agent(write("sub.txt")))
    await chat.decide(is_approved=True)
    await until(lambda: chat.session.approvals.filter(tool_name="Write").first())
    await chat.decide(is_approved=False, message="Not in here.")
    run = await chat.finished()

    assert run.success
    assert tree(chat) == []
    inside = [call for call in demo.state.model_calls if call.agent_id]
    assert "Not in here." in str(inside[-1].messages)


async def test_reads_in_one_message_are_asked_side_by_side(
    engine: Engine, alice: User, override_conf: Override
) -> None:
    override_conf(ask_for_everything=True)
    chat = await Chat.launch(
        alice,
        script(
            "parallel",
            'tool Read {"file_path": "$CWD/a.txt"}',
            'tool Read {"file_path": "$CWD/b.txt"}',
            "end",
        ),
    )
    for name in ("a.txt", "b.txt"):
        chat.file(name).write_text(f"content of {name}")
    await until(lambda: chat.session.approvals.pending().count() == 2)
    await chat.decide(is_approved=True)
    await chat.decide(is_approved=False, message="Not this one.")
    run = await chat.finished()
    results = await chat.results()

    assert run.success
    assert sorted(row.outcome for row in results) == [
        ToolOutcome.DENIED,
        ToolOutcome.OK,
    ]
    assert len({row.tool_use_id for row in results}) == 2


async def test_two_writes_in_one_message_are_asked_one_after_the_other(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(
        alice, script("parallel", write("a.txt"), write("b.txt"), "end")
    )
    first = await chat.decide(is_approved=True)
    second = await until(
        lambda: chat.session.approvals.pending().exclude(pk=first.pk).first()
    )
    assert tree(chat) == ["a.txt"]
    await chat.decide(is_approved=True)
    run = await chat.finished()

    assert run.success
    assert second.tool_input["file_path"].endswith("b.txt")
    assert tree(chat) == ["a.txt", "b.txt"]


async def test_unknown_and_broken_calls_are_errors_and_the_turn_goes_on(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(
        alice,
        script(
            'tool NoSuchTool {"a": 1}',
            'broken-tool Bash {"command": ',
            'tool Bash {"no_command": true}',
            "say the end",
        ),
        security_mode="full",
    )
    run = await chat.finished()
    rows = await chat.rows()

    assert run.success
    assert rows[-1].text.endswith("the end")
    calls = [row.tool_use_id for row in rows if row.role == MessageRole.TOOL_CALL]
    results = {row.tool_use_id: row for row in await chat.results()}
    assert len(calls) == 3
    assert set(calls) == set(results)
    assert all(row.outcome == ToolOutcome.ERROR for row in results.values())


async def test_files_outside_the_workspace_are_refused_in_every_mode(
    engine: Engine, alice: User, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret words")
    chat = await Chat.launch(
        alice,
        script(f'tool Read {{"file_path": "{secret}"}}', bash(f"cat {secret}")),
        security_mode="full",
    )
    run = await chat.finished()
    results = await chat.results()

    assert run.success
    assert secret.read_text() == "secret words"
    assert [row.is_error for row in results] == [True, True]
    assert not any("secret words" in row.text for row in results)
