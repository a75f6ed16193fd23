"""The warm client: reused while it fits, replaced unseen, closed in time."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from agents.demo.server import DemoServer
from agents.domain import sessions
from agents.execution.engine import Engine
from agents.execution.processes import find_marked
from agents.models import User
from agents.workspaces.folders import session_home

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli

Override = Callable[..., None]


async def test_the_next_turn_uses_the_same_process(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: one")
    await chat.finished()
    first = find_marked(chat.session.pk)
    await chat.send("say: two")
    await chat.finished(2)

    assert first
    assert find_marked(chat.session.pk) == first
    assert await chat.prompts(demo) == ["say: one", "say: two"]


async def test_changed_settings_start_a_new_process_that_remembers(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: 0")
    await chat.finished()
    sent = ["say: 0"]
    changes: list[dict[str, str]] = [
        {"model": "claude-haiku-4-5"},
        {"system_prompt": "Speak like a pirate."},
        {"mode": "ask"},
    ]
    for number, change in enumerate(changes, 1):
        before = find_marked(chat.session.pk)
        await in_thread(sessions.update_session, chat.session, alice, **change)
        sent.append(f"say: {number}")
        await chat.send(sent[-1])
        run = await chat.finished(number + 1)
        last = (await chat.requests(demo))[-1]
        body = last.body or {}

        assert run.success, run.error_text
        assert not set(before) & set(find_marked(chat.session.pk))
        assert await chat.prompts(demo) == sent
        assert body["model"] == "claude-haiku-4-5"
    assert "Speak like a pirate." in str(body["system"])
    assert "Write" not in last.tools


async def test_a_system_prompt_may_be_longer_than_an_argument(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    words = "-- a text that begins like an option. " + "wörter " * 30_000
    chat = await Chat.launch(alice, "say: long", system_prompt=words)
    run = await chat.finished()
    body = (await chat.requests(demo))[-1].body or {}

    assert run.success, run.error_text
    told = "".join(block["text"] for block in body["system"])
    assert words.strip() in told


async def test_a_lost_home_loses_nothing(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(warm_clients=0)
    chat = await Chat.launch(alice, "write the file a.txt with the text hi",
                             security_mode="full")  # fmt: skip
    await chat.finished()
    await until(lambda: not find_marked(chat.session.pk))
    await in_thread(shutil.rmtree, session_home(chat.session.pk))
    await chat.send("what did I say before?")
    run = await chat.finished(2)

    assert run.success, run.error_text
    last = (await chat.requests(demo))[-1]
    assert '"name": "Write"' in str(last.messages).replace("'", '"')
    assert "write the file a.txt" in (await chat.rows())[-1].text


async def test_too_many_and_too_old_ones_are_closed_but_never_a_busy_one(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(warm_clients=1)
    busy = await Chat.launch(alice, "demo: hold busy after 3 words")
    await busy.writing("cedar-3")
    older = await Chat.launch(alice, "say: older")
    await older.finished()
    newer = await Chat.launch(alice, "say: newer")
    await newer.finished()
    await until(lambda: not find_marked(older.session.pk))
    assert find_marked(newer.session.pk)

    override_conf(warm_idle_seconds=0)
    await engine.supervisor.pool.evict()

    assert find_marked(newer.session.pk) == []
    assert find_marked(busy.session.pk)
    demo.state.release("busy")
    run = await busy.finished()
    assert run.success


async def test_a_prompt_while_the_idle_client_is_closed_gets_a_new_one(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: one")
    await chat.finished()
    pool = engine.supervisor.pool
    await chat.send("say: two")
    await pool.close_session(chat.session.pk)
    run = await chat.finished(2)

    assert run.success, run.error_text
    assert await chat.prompts(demo) == ["say: one", "say: two"]
