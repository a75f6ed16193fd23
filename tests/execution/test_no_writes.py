"""Who may not write doesn't: Ask, Plan and sandbox against every way that is known.

Each session is tried twice: as it starts, and narrowed while its process has all tools
and a sub-agent is at work. Rules and policies allow all that these modes refuse.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.demo.server import DemoServer
from agents.domain import rules, sessions
from agents.domain.accounts import preferences_of
from agents.execution.confinement import probe_jail
from agents.execution.engine import Engine
from agents.models import User
from agents.models.messages import ToolOutcome

from .conftest import Chat, in_thread
from .test_gate_policy import bash, in_sub_agent, script
from .test_mcp_session import WRITE, Settings

pytestmark = [
    pytest.mark.cli,
    pytest.mark.skipif(not probe_jail().jailed, reason="no jail here"),
]


def use(tool: str, **arguments: Any) -> str:
    return f"tool {tool} {json.dumps(arguments)}"


def write(path: str) -> str:
    return use("Write", file_path=path, content="x")


def edit(tool: str, path: str) -> str:
    return use(tool, file_path=path, old_string="old", new_string="new")


FILE_TOOLS = [
    write("$CWD/new.txt"),
    write("$CWD/deep/new.txt"),
    write("$CWD/old.txt"),
    write("$CWD/link.txt"),
    write("$CWD/out/new.txt"),
    write("$CWD/../new.txt"),
    write("~/.claude/settings.json"),
    write("~/.claude/plans/some-plan.md"),
    write("/tmp/new.txt"),
    edit("Edit", "$CWD/old.txt"),
    edit("Edit", "$CWD/link.txt"),
    edit("MultiEdit", "$CWD/old.txt"),
    use("NotebookEdit", notebook_path="$CWD/n.ipynb", new_source="x", cell_id="a"),
]
COMMANDS = [
    "echo x > new.txt",
    "echo x >> old.txt",
    "touch new.txt",
    "tee new.txt < old.txt",
    "cp old.txt new.txt",
    "mv old.txt new.txt",
    "rm old.txt",
    "sed -i s/old/new/ old.txt",
    "ln -s old.txt new.txt",
    "cat <<E > new.txt\nx\nE",
    "(cd . && mkdir new)",
    "ls; : > new.txt",
    "X=1 env touch new.txt",
    "bash -c 'touch new.txt'",
    "python3 -c \"open('new.txt', 'w')\"",
    "find . -name old.txt -exec cp {} new.txt ';'",
    "echo new.txt | xargs touch",
    "truncate -s 0 old.txt",
]
OTHERS = [
    use(WRITE, title="a", text="milk"),
    use("Task", description="d", prompt="p", subagent_type="general-purpose"),
    use("EnterWorktree", name="w"),
]
ATTEMPTS = [*FILE_TOOLS, *map(bash, COMMANDS), *OTHERS]
assert len(ATTEMPTS) >= 30
SUB_AGENT = in_sub_agent(
    "hold NARROWED after 1 words",
    *("parallel", write("$CWD/new.txt"), edit("Edit", "$CWD/old.txt")),
    *(bash("touch new.txt"), use(WRITE, title="b", text="milk"), "end"),
)
NARROW = {
    "ask": {"mode": "ask"},
    "plan": {"mode": "plan"},
    "sandbox": {"security_mode": "sandbox"},
}
WIDE = {"mode": "agent", "security_mode": "full"}


def allow_everything(user: User) -> None:
    for tool in ("Write", "Edit", "NotebookEdit", "Bash", "Agent", "mcp__notes"):
        draft = rules.Draft(effect="allow", tool=tool, scope="user")
        rules.save_rule(draft, user)
    preferences = preferences_of(user)
    preferences.tool_policies = {"Write": "always_allow", "Bash": "always_allow"}
    preferences.save()


def furnish(chat: Chat) -> None:
    folder = Path(chat.session.cwd)
    outside = folder.with_name(f"{folder.name}-outside")
    outside.mkdir()
    (folder / "old.txt").write_text("old")
    (folder / "n.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4}')
    (folder / "link.txt").symlink_to("old.txt")
    (folder / "out").symlink_to(outside)


def files(chat: Chat) -> dict[str, bytes]:
    """All that lies in the session's folder and beside it."""
    folder = Path(chat.session.cwd)
    return {
        str(path.relative_to(folder.parent)): path.read_bytes()
        if path.is_file()
        else b""
        for path in folder.parent.rglob("*")
    }


@pytest.mark.parametrize("narrow", NARROW)
async def test_nothing_is_written_in_any_of_thirty_ways(
    engine: Engine, alice: User, demo: DemoServer, narrow: str
) -> None:
    await (await Settings.of(alice)).add_program("Notes")
    await in_thread(allow_everything, alice)
    parallel = script(
        f"hold furnished-{narrow} after 1 words", "parallel", *ATTEMPTS, "end"
    )
    how = {**WIDE, **NARROW[narrow]}
    chat = await Chat.launch(alice, parallel, **how)
    await in_thread(demo.state.wait_until_held, f"furnished-{narrow}")
    furnish(chat)
    before = files(chat)
    demo.state.release(f"furnished-{narrow}")
    await chat.finished()

    results = await chat.results()
    assert len(results) == len(ATTEMPTS)
    assert [r.text for r in results if r.outcome == ToolOutcome.OK] == []
    assert files(chat) == before

    # Once more with a process that has all tools, narrowed while a sub-agent works.
    await in_thread(sessions.update_session, chat.session, alice, **WIDE)
    sub_agent = SUB_AGENT.replace("NARROWED", f"narrowed-{narrow}")
    again = "\n".join([sub_agent, script("parallel", *ATTEMPTS, "end")])
    await chat.send(again)
    await in_thread(demo.state.wait_until_held, f"narrowed-{narrow}")
    await in_thread(sessions.update_session, chat.session, alice, **NARROW[narrow])
    demo.state.release(f"narrowed-{narrow}")
    await chat.finished(2)

    tried = (await chat.results())[len(results) :]
    written = [r.tool_name for r in tried if r.outcome == ToolOutcome.OK]
    assert (len(tried), written) == (len(ATTEMPTS) + 5, ["Agent"])
    assert files(chat) == before


async def test_the_same_attempts_do_write_where_all_is_allowed(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    """The control of the test above."""
    await (await Settings.of(alice)).add_program("Notes")
    tries = [FILE_TOOLS[0], bash(COMMANDS[4]), OTHERS[0]]
    chat = await Chat.launch(alice, script("hold made after 1 words", *tries), **WIDE)
    await in_thread(demo.state.wait_until_held, "made")
    furnish(chat)
    demo.state.release("made")
    await chat.finished()

    assert [r.outcome for r in await chat.results()] == [ToolOutcome.OK] * 3
    assert chat.file("new.txt").read_text() == "old"
