"""Words on their way to the pages: while the model is still sending, and complete."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from agents.demo.server import DemoServer
from agents.events.bus import listen, session_group
from agents.execution.engine import Engine
from agents.models import Message, User
from agents.tasks import spawn

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli

Override = Callable[..., None]


class Page:
    """Puts a streamed text together as a page does; drops what `loses` says."""

    def __init__(self, loses: Callable[[int], bool] = lambda number: False) -> None:
        self.text = ""
        self.message_id: UUID | None = None
        self.heard = 0
        self._loses = loses

    async def read(self, message: dict[str, Any]) -> None:
        if message["type"] != "session.delta":
            return
        self.heard += 1
        if self._loses(self.heard):
            return
        self.message_id = UUID(message["message_id"])
        if message["offset"] > len(self.text):  # some were missed: look at the row
            row = await in_thread(Message.objects.get, pk=self.message_id)
            self.text = row.text
        self.text += message["text"][len(self.text) - message["offset"] :]


async def watch(chat: Chat, *pages: Page) -> asyncio.Task[None]:
    joined = asyncio.Event()

    async def listen_on() -> None:
        async with listen(session_group(chat.session.pk)) as inbox:
            joined.set()
            while True:
                message = await inbox.wait(60)
                assert message is not None
                for page in pages:
                    await page.read(message)

    task = spawn(listen_on(), name="page")
    await joined.wait()
    return task


async def test_the_first_half_is_seen_while_the_second_is_held_back(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "demo: hold half after 20 words")
    page = Page()
    watching = await watch(chat, page)
    row = await chat.writing()
    await until(lambda: len(page.text.split()) == 20)
    await until(lambda: reread(row).text.split() == page.text.split())
    demo.state.release("half")
    await chat.finished()
    watching.cancel()

    final = (await in_thread(reread, row)).text
    assert len(final.split()) == 40
    assert final.startswith(page.text)


def reread(row: Message) -> Message:
    return Message.objects.get(pk=row.pk)


async def test_a_page_that_loses_doorbells_shows_the_same_text(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(delta_save_seconds=0.2)
    chat = await Chat.launch(
        alice, "demo: stream 120 words at 60/s\ndemo: hold all\ndemo: say the last"
    )
    whole, lossy = Page(), Page(loses=lambda number: number % 3 != 0)
    watching = await watch(chat, whole, lossy)
    await in_thread(demo.state.wait_until_held, "all")
    row = await chat.writing("-120")
    await until(lambda: whole.text == reread(row).text)
    demo.state.release("all")
    await chat.finished()
    watching.cancel()

    final = (await in_thread(reread, row)).text
    assert lossy.heard > 10
    assert final.startswith(whole.text)
    assert final.startswith(lossy.text)
    assert lossy.text


async def test_a_long_burst_is_not_sent_over_and_over(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    line = json.dumps("x" * 1000 + " ")
    chat = await Chat.launch(
        alice, f"demo: text {line} times 300\ndemo: stream 60 words at 60/s"
    )
    sizes: list[int] = []

    class Scale(Page):
        async def read(self, message: dict[str, Any]) -> None:
            if message["type"] == "session.delta":
                sizes.append(len(message["text"]))

    watching = await watch(chat, Scale())
    await chat.finished()
    watching.cancel()

    final = (await chat.rows())[-1].text
    assert sum(sizes) < 3 * len(final)
