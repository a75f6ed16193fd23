"""Titles and group names from the demo model, beside real turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agents.demo.server import DemoServer
from agents.domain import metadata, sessions
from agents.domain.providers import save_provider
from agents.execution.engine import Engine
from agents.execution.metadata import generate_group_meta, generate_title
from agents.models import AgentSession, CostEntry, Provider, Run, ToolGroupMeta, User
from agents.models.providers import ProviderKind
from agents.models.runs import RunState
from tests import factories

from .conftest import Chat, in_thread, until


@pytest.fixture
def titles(override_conf: Callable[..., None]) -> None:
    override_conf(generate_titles=True)


@pytest.mark.cli
@pytest.mark.usefixtures("titles")
async def test_a_title_comes_beside_the_turn(engine: Engine, alice: User) -> None:
    task = "Could you please count the honey bees in the garden behind the house"
    chat = await Chat.launch(alice, task)

    named = await until(
        lambda: AgentSession.objects.filter(name_is_automatic=False).first()
    )

    assert named.name == "Could you please count the honey"
    event = await in_thread(chat.session.events.get, type="agent:name_updated")
    assert event.data == {"name": named.name}
    run = await chat.finished()
    assert run.success
    side = await in_thread(CostEntry.objects.get, run=None)
    assert side.session_id == chat.session.pk
    assert "haiku" in side.model


@pytest.mark.cli
@pytest.mark.usefixtures("titles")
async def test_a_group_gets_a_name_and_once_a_better_one(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    calls = " ".join(
        f'demo: tool Bash {{"command": "echo {word}"}}\n' for word in ("a", "b", "c")
    )
    chat = await Chat.launch(alice, calls, security_mode="full")
    run = await chat.finished()
    assert run.success, run.error_text

    meta = await until(lambda: ToolGroupMeta.objects.filter(is_refined=True).first())

    first = await in_thread(chat.session.messages.filter(role="tool_call").first)
    assert first is not None
    assert meta.first_message_id == first.pk
    assert meta.name
    assert meta.svg == ""
    events = await in_thread(
        lambda: list(chat.session.events.filter(type="agent:group_meta_updated"))
    )
    assert events[-1].data["is_refined"] is True
    assert len(events) <= 2


async def test_a_person_who_is_quicker_wins(
    engine: Engine, transactional_db: None, alice: User
) -> None:
    session = await in_thread(make_idle, alice)
    prompt = await in_thread(metadata.title_prompt, session.pk)
    assert prompt is not None

    await in_thread(sessions.rename_session, session, "My own name")

    assert not await in_thread(metadata.apply_title, session.pk, "Another name")
    assert not await generate_title(engine.gateway, session.pk)
    await in_thread(session.refresh_from_db)
    assert session.name == "My own name"


async def test_without_an_answer_the_first_words_stay(
    engine: Engine, alice: User, override_conf: Callable[..., None]
) -> None:
    override_conf(side_call_seconds=5)
    session = await in_thread(make_idle, alice)
    await in_thread(point_at_nothing, session, alice)

    assert not await generate_title(engine.gateway, session.pk, is_last_try=False)
    await in_thread(session.refresh_from_db)
    assert session.name_is_automatic

    assert await generate_title(engine.gateway, session.pk)
    await in_thread(session.refresh_from_db)
    assert (session.name, session.name_is_automatic) == ("Count to three", False)


async def test_a_slow_model_is_not_waited_for(
    engine: Engine, alice: User, override_conf: Callable[..., None]
) -> None:
    override_conf(side_call_seconds=0.2)
    session = await in_thread(make_idle, alice)
    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await in_thread(point_at, session, alice, f"http://127.0.0.1:{port}")

    assert await generate_title(engine.gateway, session.pk)

    await in_thread(session.refresh_from_db)
    assert session.name == "Count to three"
    server.close()


async def test_a_call_that_could_cost_too_much_is_not_made(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Callable[..., None]
) -> None:
    override_conf(side_call_max_usd_micros=10)
    session = await in_thread(make_idle, alice)
    asked = len(demo.state.requests)

    assert await generate_title(engine.gateway, session.pk)

    assert len(demo.state.requests) == asked
    await in_thread(session.refresh_from_db)
    assert session.name == "Count to three"


async def test_a_used_up_budget_names_nothing(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    session = await in_thread(make_idle, alice, max_budget_usd_micros=5)
    await in_thread(
        AgentSession.objects.filter(pk=session.pk).update, cost_usd_micros=5
    )
    asked = len(demo.state.requests)

    await generate_title(engine.gateway, session.pk)

    assert len(demo.state.requests) == asked


async def test_a_group_falls_back_to_its_tools_own_name(
    engine: Engine, alice: User
) -> None:
    session = await in_thread(make_idle, alice)
    tasks = await in_thread(use_three_tools, session)
    await in_thread(point_at_nothing, session, alice)

    assert await generate_group_meta(engine.gateway, tasks[0])

    meta = await in_thread(ToolGroupMeta.objects.get)
    assert (meta.name, meta.svg, meta.is_refined) == ("Bash", "", False)


def make_idle(alice: User, **config: Any) -> AgentSession:
    """A session whose run no supervisor will claim."""
    session = factories.make_session(alice, **config)
    Run.objects.filter(session=session).update(state=RunState.FINISHED)
    return session


def use_three_tools(session: AgentSession) -> list[metadata.GroupTask]:
    Run.objects.filter(session=session).update(state=RunState.RUNNING, fencing=1)
    run = session.runs.get()
    for number in range(3):
        factories.call_tool(run, f"toolu_{number}")
    return metadata.groups_to_name(session.pk)


def point_at(session: AgentSession, alice: User, url: str) -> None:
    provider = Provider(
        owner=None, name="Elsewhere", kind=ProviderKind.GATEWAY, base_url=url
    )
    session.provider = save_provider(provider, alice)
    session.save(update_fields=["provider"])


def point_at_nothing(session: AgentSession, alice: User) -> None:
    point_at(session, alice, "http://127.0.0.1:9")


async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take a call and never answer it."""
    await reader.read()
    writer.close()
