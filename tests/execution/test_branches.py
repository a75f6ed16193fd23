"""Branches on the real engine: the model remembers exactly what the branch shows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from agents.demo.server import DemoServer
from agents.domain import branches
from agents.domain.duplicates import duplicate_session
from agents.domain.queries.transcript import load_transcript
from agents.execution.engine import Engine
from agents.models import Message, User
from agents.models.messages import MessageRole
from agents.workspaces.folders import session_home

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli


def prompts(demo: DemoServer) -> list[str]:
    """The person's texts in the newest conversation that the model was sent."""
    request = demo.state.model_calls[-1]
    return [text for text in _user_texts(request.messages) if text.startswith("say: ")]


def _user_texts(messages: list[dict[str, Any]]) -> list[str]:
    texts = []
    for message in messages:
        if message["role"] != "user":
            continue
        content = message["content"]
        parts = [{"type": "text", "text": content}]
        for part in parts if isinstance(content, str) else content:
            if part.get("type") == "text":
                texts.append(part["text"])
    return texts


async def shown(chat: Chat) -> list[str]:
    """The texts of the branch that the page shows."""
    session = await chat.reload()
    transcript = await in_thread(load_transcript, session, chat.user)
    return [item.message.text for item in transcript.items]


async def edit(chat: Chat, old: str, new: str) -> None:
    message = await in_thread(
        lambda: (
            Message.objects.filter(
                session=chat.session, role=MessageRole.USER, text=old
            )
            .order_by("-seq")
            .get()
        )
    )
    await in_thread(branches.edit_message, message, author=chat.user, text=new)


async def test_an_edit_keeps_the_memory_before_it_and_nothing_after(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: one")
    await chat.finished(1)
    await chat.send("say: two")
    await chat.finished(2)
    await chat.send("say: three")
    await chat.finished(3)

    await edit(chat, "say: two", "say: second")
    await chat.finished(4)

    assert prompts(demo) == ["say: one", "say: second"]
    assert await shown(chat) == ["say: one", "one", "say: second", "second"]


async def test_three_nested_edits_linearise_on_page_and_in_memory(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: u1")
    await chat.finished(1)
    await chat.send("say: u2")
    await chat.finished(2)
    await edit(chat, "say: u2", "say: u2b")
    await chat.finished(3)
    await chat.send("say: u3b")
    await chat.finished(4)
    await edit(chat, "say: u3b", "say: u3c")
    await chat.finished(5)
    await chat.send("say: u4c")
    await chat.finished(6)
    await edit(chat, "say: u4c", "say: u4d")
    await chat.finished(7)

    assert prompts(demo) == ["say: u1", "say: u2b", "say: u3c", "say: u4d"]
    assert await shown(chat) == [
        *("say: u1", "u1", "say: u2b", "u2b"),
        *("say: u3c", "u3c", "say: u4d", "u4d"),
    ]


async def test_switching_back_goes_on_in_that_branchs_memory(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: one")
    await chat.finished(1)
    main = await in_thread(chat.session.branches.get)
    await edit(chat, "say: one", "say: other")
    await chat.finished(2)
    assert prompts(demo) == ["say: other"]

    await in_thread(branches.switch_branch, chat.session, main)
    await chat.send("say: on")
    await chat.finished(3)

    assert prompts(demo) == ["say: one", "say: on"]
    assert await shown(chat) == ["say: one", "one", "say: on", "on"]


async def test_editing_the_first_message_of_a_branch_makes_a_sibling(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: one")
    await chat.finished(1)
    await chat.send("say: two")
    await chat.finished(2)
    await edit(chat, "say: two", "say: two b")
    await chat.finished(3)
    await edit(chat, "say: two b", "say: two c")
    await chat.finished(4)

    assert prompts(demo) == ["say: one", "say: two c"]
    forks = await in_thread(
        lambda: list(
            chat.session.branches.exclude(parent_branch=None).values_list(
                "parent_branch", "fork_point_message__text"
            )
        )
    )
    assert len(set(forks)) == 1
    assert forks[0][1] == "say: two"


async def test_an_edit_stops_the_running_turn_and_goes_next(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: one")
    await chat.finished(1)
    await chat.send("demo: stream 3000 words at 40/s")
    await until(lambda: chat.session.messages.filter(is_streaming=True).first())

    await edit(chat, "demo: stream 3000 words at 40/s", "say: instead")
    await chat.finished(3)

    assert prompts(demo) == ["say: one", "say: instead"]
    assert await shown(chat) == ["say: one", "one", "say: instead", "instead"]


async def test_regenerate_asks_the_same_prompt_again(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: one")
    await chat.finished(1)
    await chat.send("say: two")
    await chat.finished(2)
    answer = (await chat.rows())[-1]

    await in_thread(branches.regenerate, answer, author=alice)
    await chat.finished(3)

    assert prompts(demo) == ["say: one", "say: two"]
    assert await shown(chat) == ["say: one", "one", "say: two", "two"]


async def test_a_duplicate_remembers_up_to_the_chosen_message(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: one")
    await chat.finished(1)
    await chat.send("say: two")
    await chat.finished(2)
    await chat.send("say: three")
    await chat.finished(3)
    await edit(chat, "say: three", "say: third")
    await chat.finished(4)
    answer = await in_thread(
        lambda: chat.session.messages.get(role=MessageRole.ASSISTANT, text="two")
    )

    session = await chat.reload()
    copy = Chat(await in_thread(duplicate_session, session, alice, up_to=answer), alice)
    await copy.send("say: on")
    await copy.finished(1)

    assert prompts(demo) == ["say: one", "say: two", "say: on"]
    assert await shown(copy) == ["say: one", "one", "say: two", "two", "say: on", "on"]


async def test_each_way_to_branch_works_without_the_clis_own_files(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: one")
    await chat.finished(1)
    first = await in_thread(chat.session.branches.get)

    async def forget() -> None:
        await engine.supervisor.pool.close_all()
        await in_thread(shutil.rmtree, session_home(chat.session.pk))

    await forget()
    await chat.send("say: two")
    await chat.finished(2)
    assert prompts(demo) == ["say: one", "say: two"]

    await forget()
    await edit(chat, "say: two", "say: second")
    await chat.finished(3)
    assert prompts(demo) == ["say: one", "say: second"]
    await forget()
    await chat.send("say: third")
    await chat.finished(4)
    await forget()
    await edit(chat, "say: third", "say: other third")
    await chat.finished(5)
    assert prompts(demo) == ["say: one", "say: second", "say: other third"]

    await forget()
    await in_thread(branches.regenerate, (await chat.rows())[-1], author=alice)
    await chat.finished(6)
    assert prompts(demo) == ["say: one", "say: second", "say: other third"]

    await forget()
    await in_thread(branches.switch_branch, await chat.reload(), first)
    await chat.send("say: on")
    await chat.finished(7)
    assert prompts(demo) == ["say: one", "say: two", "say: on"]


async def test_a_whole_duplicate_works_without_the_clis_own_files(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: one")
    await chat.finished(1)
    (Path(chat.session.cwd) / "kept.txt").write_text("kept")

    copy = Chat(await in_thread(duplicate_session, await chat.reload(), alice), alice)
    await engine.supervisor.pool.close_all()
    await in_thread(shutil.rmtree, session_home(chat.session.pk))
    await copy.send("say: two")
    await copy.finished(1)

    assert prompts(demo) == ["say: one", "say: two"]
    assert copy.session.cwd != chat.session.cwd
    assert (Path(copy.session.cwd) / "kept.txt").read_text() == "kept"
