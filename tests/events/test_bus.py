from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.layers import channel_layers
from django.db import transaction
from redis.exceptions import ConnectionError as RedisConnectionError

from agents.events import bus
from agents.events.vocabulary import (
    Event,
    MessageSaved,
    NameUpdated,
    StreamDelta,
    ToolDenied,
)
from agents.models import AgentSession, Share, User
from agents.tasks import spawn
from tests import factories
from tests.threads import at_once

PATIENCE_SECONDS = 10
NOTHING_SECONDS = 0.05

transactional = pytest.mark.django_db(transaction=True)


def renamed(session: AgentSession, name: str = "New") -> NameUpdated:
    return NameUpdated(session_id=session.pk, name=name)


def publish(*events: Event) -> list[int]:
    with transaction.atomic():
        return [bus.publish_on_commit(event) for event in events]


@transaction.atomic
def publish_and_fail(event: Event) -> None:
    bus.publish_on_commit(event)
    raise ZeroDivisionError


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(group, message type) of every doorbell that was rung."""
    heard: list[tuple[str, str]] = []
    monkeypatch.setattr(
        bus, "ring", lambda group, message: heard.append((group, message["type"]))
    )
    return heard


# Rows


def test_publishing_outside_a_transaction_is_refused(db: None) -> None:
    connection = transaction.get_connection()
    was_atomic = connection.in_atomic_block
    connection.in_atomic_block = False
    try:
        with pytest.raises(RuntimeError, match="needs a transaction"):
            bus.publish_on_commit(NameUpdated(session_id=uuid4(), name="x"))
    finally:
        connection.in_atomic_block = was_atomic


@transactional
def test_a_commit_leaves_the_row_and_rings(rung: list[tuple[str, str]]) -> None:
    session = factories.make_session(factories.make_user("alice"))
    rung.clear()

    (seq,) = publish(renamed(session))

    event = session.events.get(seq=seq)
    assert (event.type, event.data) == ("agent:name_updated", {"name": "New"})
    assert rung == [
        (f"session.{session.pk}", "session.event"),
        (f"user.{session.owner_id}", "user.event"),
    ]


@transactional
def test_a_rollback_leaves_neither_row_nor_ring(rung: list[tuple[str, str]]) -> None:
    session = factories.make_session(factories.make_user("alice"))
    rung.clear()
    before = list(session.events.values())

    with pytest.raises(ZeroDivisionError):
        publish_and_fail(renamed(session))

    assert rung == []
    assert list(session.events.values()) == before
    assert publish(renamed(session)) == [len(before) + 1]


@transactional
def test_an_inner_rollback_takes_only_its_own_event(
    rung: list[tuple[str, str]],
) -> None:
    session = factories.make_session(factories.make_user("alice"))
    rung.clear()
    last = session.events.last()
    assert last is not None

    with transaction.atomic():
        with pytest.raises(ZeroDivisionError):
            publish_and_fail(renamed(session, "lost"))
        kept = bus.publish_on_commit(renamed(session, "kept"))

    assert kept == last.seq + 1
    assert len(rung) == 2
    stored = session.events.get(seq=kept)
    assert stored.data == {"name": "kept"}


@transactional
def test_seqs_grow_without_gaps_also_from_several_threads() -> None:
    session = factories.make_session(factories.make_user("alice"))
    before = session.events.count()

    results = at_once(
        *[
            lambda number=number: publish(*[renamed(session, str(number))] * 5)
            for number in range(4)
        ]
    )

    assert not [result for result in results if isinstance(result, Exception)]
    seqs = list(session.events.values_list("seq", flat=True))
    assert seqs == list(range(1, before + 21))
    session.refresh_from_db()
    assert session.last_seq == seqs[-1]
    for result in results:  # what one transaction says is not torn apart
        assert isinstance(result, list)
        assert result == list(range(result[0], result[0] + 5))


def test_an_event_of_no_session_is_an_error(db: None) -> None:
    with pytest.raises(AgentSession.DoesNotExist):
        bus.publish_on_commit(NameUpdated(session_id=uuid4(), name="x"))


def test_event_data_is_cleaned(session: AgentSession) -> None:
    denied = ToolDenied(
        session_id=session.pk, tool_use_id="a\x00", tool_name="b", reason="\ud800"
    )

    seq = bus.publish_on_commit(denied)

    data = session.events.get(seq=seq).data
    assert (data["tool_use_id"], data["reason"]) == ("a\ufffd", "\ufffd")


def test_publishing_takes_three_queries_and_a_slim_one_four(
    session: AgentSession, django_assert_num_queries: Any
) -> None:
    saved = MessageSaved(
        session_id=session.pk,
        message_id=uuid4(),
        branch_id=uuid4(),
        role="assistant",
    )
    with django_assert_num_queries(3):
        bus.publish_on_commit(saved)
    with django_assert_num_queries(4):
        bus.publish_on_commit(renamed(session))


# Who hears


@transactional
def test_slim_events_reach_the_owner_and_whom_it_is_shared_with(
    rung: list[tuple[str, str]],
) -> None:
    alice, bob, carol = (
        factories.make_user(name) for name in ("alice", "bob", "carol")
    )
    factories.make_user("charlie")
    session = factories.make_session(alice)
    Share.objects.create(session=session, user=bob, right="view")
    Share.objects.create(session=session, user=carol, right="operate")
    rung.clear()

    publish(renamed(session))

    people = {group for group, kind in rung if kind == "user.event"}
    assert people == {f"user.{user.pk}" for user in (alice, bob, carol)}


@transactional
def test_other_events_reach_only_who_watches(rung: list[tuple[str, str]]) -> None:
    session = factories.make_session(factories.make_user("alice"))
    rung.clear()

    publish(
        ToolDenied(
            session_id=session.pk, tool_use_id="a", tool_name="Bash", reason="No"
        )
    )

    assert rung == [(f"session.{session.pk}", "session.event")]


def test_groups_are_names_that_layers_accept() -> None:
    layer = channel_layers["default"]
    for make in (bus.session_group, bus.user_group, bus.approval_group):
        assert layer.require_valid_group_name(make(uuid4()))
    assert layer.require_valid_group_name(bus.control_group(uuid4()))


# Doorbells


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server")
    socket = tmp_path / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", ""]
    server = subprocess.Popen([program, *options], cwd=tmp_path, stdout=subprocess.PIPE)
    assert server.stdout is not None
    try:
        for line in server.stdout:
            if b"eady to accept connections" in line:
                break
        yield f"unix://{socket}"
    finally:
        server.terminate()
        server.stdout.close()
        server.wait()


@pytest.fixture(params=["memory", "redis"])
async def any_layer(
    request: pytest.FixtureRequest, settings: Any
) -> AsyncIterator[None]:
    """Each test twice: on the embedded mode's layer and on the team mode's."""
    backend: dict[str, Any] = {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    if request.param == "redis":
        backend = {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [request.getfixturevalue("redis_url")]},
        }
    settings.CHANNEL_LAYERS = {"default": backend}
    yield
    await bus.layer().flush()


@pytest.mark.usefixtures("any_layer")
async def test_who_listens_is_woken() -> None:
    async with bus.listen("approval.1", "control.1") as inbox:
        await bus.send("control.1", {"type": "control.stop"})

        assert await inbox.wait(PATIENCE_SECONDS) == {"type": "control.stop"}


@pytest.mark.usefixtures("any_layer")
async def test_who_waits_already_is_woken_from_a_thread() -> None:
    async with bus.listen("approval.1") as inbox:
        waiting = spawn(inbox.wait(PATIENCE_SECONDS), name="waiter")

        await sync_to_async(bus.ring)("approval.1", {"type": "approval.resolved"})

        assert await waiting == {"type": "approval.resolved"}


@pytest.mark.usefixtures("any_layer")
async def test_time_that_runs_out_loses_no_ring() -> None:
    async with bus.listen("approval.1") as inbox:
        assert await inbox.wait(NOTHING_SECONDS) is None
        # Nobody waits at this moment: it looks at the row.
        await bus.send("approval.1", {"type": "one"})
        await bus.send("approval.1", {"type": "two"})

        assert await inbox.wait(PATIENCE_SECONDS) == {"type": "one"}
        assert await inbox.wait(PATIENCE_SECONDS) == {"type": "two"}


@pytest.mark.usefixtures("any_layer")
async def test_who_left_hears_nothing_and_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    async with bus.listen("approval.1") as inbox:
        await inbox.wait(NOTHING_SECONDS)
    async with bus.listen("approval.2") as other:
        await bus.send("approval.1", {"type": "late"})

        assert await other.wait(NOTHING_SECONDS) is None

    ours = {task for task in asyncio.all_tasks() - before if "inbox" in task.get_name()}
    assert ours == set()


@pytest.mark.usefixtures("any_layer")
async def test_deltas_go_to_the_watchers_of_the_session() -> None:
    session_id, message_id = uuid4(), uuid4()
    delta = StreamDelta(
        session_id=session_id, message_id=message_id, offset=3, text="more"
    )
    async with bus.listen(bus.session_group(session_id)) as inbox:
        await bus.publish_delta(delta)

        assert await inbox.wait(PATIENCE_SECONDS) == {
            "type": "session.delta",
            "session_id": str(session_id),
            "message_id": str(message_id),
            "offset": 3,
            "text": "more",
        }


@pytest.fixture
def memory_layer(settings: Any) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels.layers.InMemoryChannelLayer",
            "CONFIG": {"capacity": 3},
        }
    }


@pytest.mark.usefixtures("memory_layer")
async def test_a_full_mailbox_loses_rings_without_an_error() -> None:
    async with bus.listen("session.1") as inbox:
        for number in range(10):
            await bus.send("session.1", {"type": "session.event", "seq": number})

        heard = [await inbox.wait(PATIENCE_SECONDS) for _ in range(3)]
        assert [message["seq"] for message in heard if message] == [0, 1, 2]
        assert await inbox.wait(NOTHING_SECONDS) is None
        await bus.send("session.1", {"type": "session.event", "seq": 99})
        assert await inbox.wait(PATIENCE_SECONDS) is not None


class DeadLayer:
    """Redis is down, from the start or from some call on."""

    def __init__(self, error: Exception, *, works: tuple[str, ...] = ()) -> None:
        self._error = error
        self._works = works

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any) -> Any:
            if name in self._works:
                return "channel" if name == "new_channel" else {"type": name}
            raise self._error

        return call


ERRORS = [RedisConnectionError("down"), OSError("down"), TimeoutError()]


@pytest.mark.parametrize("error", ERRORS)
async def test_a_layer_that_is_down_makes_waiters_deaf_not_dead(
    monkeypatch: pytest.MonkeyPatch, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bus, "layer", lambda: DeadLayer(error))

    await bus.send("session.1", {"type": "session.event"})
    async with bus.listen("session.1") as inbox:
        assert await inbox.wait(NOTHING_SECONDS) is None

    assert "doorbell of session.1 was lost" in caplog.text
    assert "could not join" in caplog.text


async def test_a_layer_that_goes_down_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bus, "RETRY_SECONDS", 0)
    broken = DeadLayer(RedisConnectionError(), works=("new_channel", "group_add"))
    monkeypatch.setattr(bus, "layer", lambda: broken)

    async with bus.listen("session.1") as inbox:
        assert await inbox.wait(NOTHING_SECONDS) is None
        broken._works += ("receive",)
        assert await inbox.wait(PATIENCE_SECONDS) == {"type": "receive"}

    assert "the channel layer is down" in caplog.text
    assert "could not leave" in caplog.text


@transactional
def test_a_broken_doorbell_does_not_undo_or_hide_a_commit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(group: str, message: dict[str, Any]) -> None:
        raise ValueError(group)

    session = factories.make_session(factories.make_user("alice"))
    monkeypatch.setattr(bus, "ring", break_down)
    done: list[UUID] = []

    with transaction.atomic():
        bus.publish_on_commit(renamed(session))
        transaction.on_commit(lambda: done.append(session.pk))

    assert done == [session.pk]
    assert session.events.filter(type="agent:name_updated").exists()
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2


def test_a_missing_layer_is_said(settings: Any) -> None:
    settings.CHANNEL_LAYERS = {}

    with pytest.raises(RuntimeError, match="CHANNEL_LAYERS"):
        bus.layer()


def test_people_are_asked_once_for_each_event(session: AgentSession, bob: User) -> None:
    Share.objects.create(session=session, user=session.owner, right="view")
    Share.objects.create(session=session, user=bob, right="view")

    people = bus._people_of(session.pk)

    assert sorted(people, key=str) == sorted([session.owner_id, bob.pk], key=str)
