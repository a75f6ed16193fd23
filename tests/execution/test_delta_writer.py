"""When streamed text is published and when it is saved, without an engine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from agents.domain import blocks
from agents.events.bus import Inbox, listen, session_group
from agents.execution.deltas import (
    MAX_UNSAVED_CHARACTERS,
    BlockStream,
    DeltaWriter,
    Pace,
)
from agents.models import Message, Run
from agents.models.messages import MessageRole
from agents.tasks import spawn

from .conftest import in_thread, until

pytestmark = pytest.mark.django_db(transaction=True)

Override = Callable[..., None]
NEVER = 3600.0


@asynccontextmanager
async def writing(run: Run) -> AsyncIterator[tuple[BlockStream, Inbox]]:
    """A stream of this run, its writer at work, and a page that listens."""
    row = await in_thread(blocks.start_stream, run, role=MessageRole.ASSISTANT)
    writer = DeltaWriter()
    stream = writer.open(run.session_id, row.pk)
    async with listen(session_group(run.session_id)) as page:
        running = spawn(writer.run(), name="writer")
        yield stream, page
        running.cancel()
        await asyncio.wait({running})


async def next_text(page: Inbox) -> tuple[int, str]:
    message = await page.wait(60)
    assert message is not None
    assert message["type"] == "session.delta"
    return message["offset"], message["text"]


def stored(stream: BlockStream) -> str:
    return Message.objects.get(pk=stream.message_id).text


async def test_the_first_words_leave_at_once(run: Run, override_conf: Override) -> None:
    override_conf(delta_join_seconds=NEVER)

    async with writing(run) as (stream, page):
        stream.append("One, ")

        assert await next_text(page) == (0, "One, ")


async def test_words_do_not_wait_for_a_slow_database(
    run: Run, override_conf: Override
) -> None:
    override_conf(delta_save_seconds=0.01)
    release = threading.Event()

    async with writing(run) as (stream, page):
        busy = spawn(in_thread(release.wait, 60), name="a slow query")
        stream.append("One, ")
        first = await next_text(page)
        stream.append("two")
        second = await next_text(page)
        release.set()
        await busy

    assert (first, second) == ((0, "One, "), (0, "One, two"))


async def test_a_text_is_saved_though_nothing_follows(
    run: Run, override_conf: Override
) -> None:
    override_conf(delta_save_seconds=0.01)

    async with writing(run) as (stream, page):
        stream.append("One, ")

        await until(lambda: stored(stream) == "One, ")
        assert await next_text(page) == (0, "One, ")


async def test_what_is_saved_is_not_sent_again(
    run: Run, override_conf: Override
) -> None:
    override_conf(delta_save_seconds=0.01)

    async with writing(run) as (stream, page):
        stream.append("One, ")
        await next_text(page)
        await until(lambda: not stream.unsaved_characters)
        stream.append("two")

        assert await next_text(page) == (5, "two")


async def test_a_burst_is_saved_before_its_time(
    run: Run, override_conf: Override
) -> None:
    override_conf(delta_save_seconds=NEVER)
    much = "x" * (MAX_UNSAVED_CHARACTERS + 1)

    async with writing(run) as (stream, page):
        stream.append(much)

        assert await next_text(page) == (0, much)
        await until(lambda: stored(stream) == much)


def test_two_may_leave_in_a_row_after_a_pause() -> None:
    pace = Pace()
    pace.take(100.0, 0.05)

    assert pace.wait_seconds(100.0, 0.05) == 0
    pace.take(100.0, 0.05)
    assert pace.wait_seconds(100.0, 0.05) == pytest.approx(0.05)


def test_twenty_a_second_at_most() -> None:
    pace, now = Pace(), 100.0
    for _ in range(100):
        now += pace.wait_seconds(now, 0.05)
        pace.take(now, 0.05)

    assert now == pytest.approx(100.0 + 98 * 0.05)


def test_words_that_come_as_often_as_they_may_leave_never_wait() -> None:
    pace = Pace()
    early_and_late = [
        100 + 0.05 * number + 0.02 * (-1) ** number for number in range(9)
    ]

    waits = []
    for now in early_and_late:
        waits.append(pace.wait_seconds(now, 0.05))
        pace.take(now, 0.05)

    assert waits == [0.0] * 9
