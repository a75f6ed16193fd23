"""Security modes through the real CLI: what each lets run, and changing them midway."""

from __future__ import annotations

import asyncio

import pytest

from agents.demo.server import DemoServer
from agents.domain import people, permissions, sessions
from agents.execution.engine import Engine
from agents.models import ApprovalRequest, Message, User
from agents.models.approvals import ApprovalStatus
from agents.models.messages import ToolOutcome
from agents.models.runs import RunState
from agents.models.users import Role
from agents.policy.tools import find_tool

from .conftest import Chat, in_thread, until
from .test_gate_policy import Override, bash, in_sub_agent, script, tree, write

pytestmark = pytest.mark.cli

WEB, MEMORY = "mcp__openswarm__fetch", "mcp__openswarm__memory_save"
# One call of each class, in this order: R N W X S I IW U.
CALLS = {
    "Read": 'tool Read {"file_path": "$CWD/here.txt"}',
    WEB: f'tool {WEB} {{"url": "https://docs.invalid/"}}',
    "Write": write("written.txt"),
    "Bash": bash("touch ran.txt"),
    "Agent": in_sub_agent("say hi").removeprefix("demo: "),
    "TodoWrite": 'tool TodoWrite {"todos": []}',
    MEMORY: f'tool {MEMORY} {{"text": "a fact"}}',
    "Mystery": 'tool Mystery {"a": 1}',
}
MATRIX = {
    "deny": "deny deny deny deny deny deny deny deny",
    "sandbox": "allow deny deny deny deny allow deny deny",
    "allowlist": "deny deny deny deny deny deny deny deny",
    "ask": "allow ask ask ask ask allow ask deny",
    "full": "allow allow allow allow allow allow allow deny",
}


def is_offered(name: str) -> bool:
    """Whether a server that has the tool runs in this version."""
    spec = find_tool(name)
    return spec is not None and spec.server in (None, *permissions.OWN_SERVERS)


async def approve_all(chat: Chat) -> set[str]:
    """Answer whatever asks until the turn is over. Returns: the tools that asked."""

    def look() -> ApprovalRequest | str | None:
        waiting = chat.session.approvals.pending().first()
        over = chat.session.runs.filter(state=RunState.FINISHED).exists()
        return waiting or ("over" if over else None)

    asked = set()
    while (found := await until(look)) != "over":
        assert isinstance(found, ApprovalRequest)
        asked.add(found.tool_name)
        await chat.decide(is_approved=True)
    return asked


def has_run(result: Message) -> bool:
    """A refused call is recorded as denied; one unknown to the CLI, as failed."""
    is_unknown = "No such tool" in result.text
    return result.outcome != ToolOutcome.DENIED and not is_unknown


@pytest.mark.parametrize("mode", list(MATRIX))
async def test_each_mode_does_with_each_class_what_the_table_says(
    engine: Engine, alice: User, mode: str
) -> None:
    expected = {
        name: word if is_offered(name) else "deny"
        for name, word in zip(CALLS, MATRIX[mode].split(), strict=True)
    }
    chat = await Chat.launch(alice, script(*CALLS.values()), security_mode=mode)
    chat.file("here.txt").write_text("something to read")

    asked = await approve_all(chat)

    results = {row.tool_name: row for row in await chat.results()}
    seen = {
        name: "ask" if name in asked else "allow" if has_run(results[name]) else "deny"
        for name in CALLS
    }
    assert seen == expected
    files = {"Write": "written.txt", "Bash": "ran.txt"}
    written = [name for tool, name in files.items() if expected[tool] != "deny"]
    assert tree(chat) == sorted(["here.txt", *written])


async def a_command_that_asks(user: User) -> Chat:
    chat = await Chat.launch(
        user, script(bash("touch ran.txt"), "say over", bash("touch later.txt"))
    )
    await chat.pending()
    await gate_rests()
    return chat


async def gate_rests() -> None:
    """Wait until the gate has looked once more at what it asks, and only waits now.

    Before that it may see a changed mode by itself, and nobody has decided then.
    """
    loop = asyncio.get_running_loop()
    await until(
        lambda: any(
            task.get_name() == "approval-bell" for task in asyncio.all_tasks(loop)
        )
    )


async def ended(chat: Chat) -> ApprovalRequest:
    """The request, once it no longer waits."""
    decided = chat.session.approvals.exclude(status=ApprovalStatus.PENDING)
    return await until(decided.select_related("decided_by").first)


async def test_deny_refuses_the_call_that_waits_and_all_that_follow(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await a_command_that_asks(alice)

    await in_thread(sessions.update_session, chat.session, alice, security_mode="deny")
    run = await chat.finished()

    request = await ended(chat)
    assert (request.status, request.decided_by) == (ApprovalStatus.DENIED, alice)
    assert run.success
    assert tree(chat) == []
    assert not any(has_run(row) for row in await chat.results())
    told = str((await chat.requests(demo))[-1].messages)
    assert "This session may not use Bash." in told


async def test_full_lets_go_the_call_that_waits_and_all_that_follow(
    engine: Engine, alice: User
) -> None:
    chat = await a_command_that_asks(alice)

    await in_thread(sessions.update_session, chat.session, alice, security_mode="full")
    run = await chat.finished()

    request = await ended(chat)
    assert (request.status, request.channel) == (ApprovalStatus.APPROVED, "policy")
    assert run.success
    assert tree(chat) == ["later.txt", "ran.txt"]
    assert await in_thread(chat.session.approvals.count) == 1


@pytest.fixture
def bob(transactional_db: None) -> User:
    return User.objects.create_user("bob", role=Role.MEMBER)


async def test_a_ceiling_that_is_lowered_binds_the_session_at_work(
    engine: Engine, alice: User, bob: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        bob,
        script(bash("touch one"), "hold lowered after 1 words", bash("touch two")),
        security_mode="full",
    )
    await in_thread(demo.state.wait_until_held, "lowered")
    bob.security_ceiling = "sandbox"
    await in_thread(people.save_person, bob, alice)
    demo.state.release("lowered")
    await chat.finished()

    assert tree(chat) == ["one"]
    results = await chat.results()
    assert [row.outcome for row in results] == [ToolOutcome.OK, ToolOutcome.DENIED]
    assert "Your limit is the mode “sandbox”" in results[-1].text


async def test_a_ceiling_that_is_lowered_forbids_the_call_that_waits(
    engine: Engine, alice: User, bob: User
) -> None:
    chat = await a_command_that_asks(bob)

    bob.security_ceiling = "sandbox"
    await in_thread(people.save_person, bob, alice)
    await chat.finished()

    request = await ended(chat)
    assert (request.status, request.decided_by) == (ApprovalStatus.DENIED, alice)
    assert tree(chat) == []


@pytest.mark.parametrize(("mode", "files"), [("deny", []), ("full", ["late.txt"])])
async def test_a_call_that_waits_without_a_process_is_bound_too(
    engine: Engine, alice: User, override_conf: Override, mode: str, files: list[str]
) -> None:
    override_conf(approval_hot_seconds=0.2, approval_poll_seconds=0.1)
    chat = await Chat.launch(alice, script(write("late.txt")))
    await until(chat.session.runs.filter(state=RunState.PARKED).first)

    await in_thread(sessions.update_session, chat.session, alice, security_mode=mode)
    await chat.finished()

    assert tree(chat) == files
    assert await in_thread(chat.session.approvals.count) == 1
