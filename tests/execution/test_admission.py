"""How many runs start at once, in which order, and who takes a slot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agents.demo.server import DemoServer
from agents.domain.queries.queue import queue_position
from agents.execution.engine import Engine
from agents.models import Run, User
from agents.models.runs import RunState

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli

Override = Callable[..., None]


def held(gate: str) -> str:
    return f"demo: hold {gate} after 2 words"


async def test_the_others_wait_in_order_and_see_their_place(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(max_runs_per_process=1)
    chats = [await Chat.launch(alice, held(f"order-{n}")) for n in range(3)]
    await chats[0].writing()

    places = [await in_thread(queue_position, chat.session.pk) for chat in chats]
    assert places == [None, 1, 2]
    for number, chat in enumerate(chats):
        await chat.writing()
        assert await in_thread(Run.objects.live().count) == 1
        demo.state.release(f"order-{number}")
        assert (await chat.finished()).success
    runs = await in_thread(lambda: list(Run.objects.order_by("started_at")))
    assert [run.session_id for run in runs] == [chat.session.pk for chat in chats]


async def test_who_waits_for_a_person_takes_no_slot(
    engine: Engine, alice: User, override_conf: Override
) -> None:
    override_conf(max_runs_per_process=1)
    asking = await Chat.launch(alice, "write the file a.txt with the text hello")
    await asking.pending()
    other = await Chat.launch(alice, "say: meanwhile")

    assert (await other.finished()).success
    await asking.decide(is_approved=True)
    assert (await asking.finished()).success


async def test_one_persons_limit_lets_others_pass(
    engine: Engine, alice: User, bob: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(max_runs_per_user=1, max_cli_starts=1)
    first = await Chat.launch(alice, held("limit-a"))
    await first.writing()
    second = await Chat.launch(alice, held("limit-b"))
    third = await Chat.launch(bob, "say: mine")

    assert (await third.finished()).success
    waiting = await in_thread(Run.objects.get, session=second.session)
    assert waiting.state == RunState.QUEUED
    demo.state.release("limit-a")
    await second.writing()
    demo.state.release("limit-b")
    assert (await second.finished()).success


async def test_starts_are_limited_and_all_come_to_their_turn(
    engine: Engine, alice: User, override_conf: Override
) -> None:
    pool = engine.supervisor.pool
    chats = [await Chat.launch(alice, f"say: {n}") for n in range(4)]
    most = 0

    def all_over() -> bool:
        nonlocal most
        most = max(most, pool.starting)
        return Run.objects.filter(state=RunState.FINISHED).count() == len(chats)

    await until(all_over)
    assert most == 2
    for chat in chats:
        assert (await chat.finished()).success
