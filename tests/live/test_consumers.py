"""Sockets: who gets one, what it says first, and how it finds what it missed."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import OperationalError
from django.test import Client

from agents.domain import blocks, messages, metadata, sessions
from agents.domain.approvals import Decision, decide_approval
from agents.events import bus
from agents.events.vocabulary import StreamDelta
from agents.live import watch
from agents.models import AgentSession, Message, Run, Share, User
from agents.models.messages import MessageRole
from agents.models.sessions import ShareRight
from agents.tasks import spawn
from tests import factories
from tests.dom import Node, parse

from .conftest import PATIENCE_SECONDS, Browser, OpenPage, in_thread

pytestmark = pytest.mark.django_db(transaction=True)


def path_of(session: AgentSession) -> str:
    return f"/ws/session/{session.pk}/"


def part(session: AgentSession, name: str) -> str:
    return f"session-{session.pk}-{name}"


def delta(message: Message, offset: int, text: str) -> StreamDelta:
    return StreamDelta(
        session_id=message.session_id, message_id=message.pk, offset=offset, text=text
    )


async def start_stream(run: Run, text: str = "") -> Message:
    message = await in_thread(blocks.start_stream, run, role=MessageRole.ASSISTANT)
    await in_thread(blocks.save_stream, message.pk, text)
    return message


def text_of(dom: Node, message: Message) -> str:
    return dom.find(f"message-{message.pk}-text").text


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every doorbell is lost."""

    async def drop(group: str, message: dict[str, Any]) -> None:
        return None

    monkeypatch.setattr(bus, "send", drop)


async def test_it_begins_with_a_snapshot(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    await in_thread(factories.say, run, "One, two.")

    page = await open_page(path_of(run.session), alice)

    items = page.dom.find(part(run.session, "items"))
    assert "Count to three" in items.words
    assert "One, two." in items.words
    assert page.dom.find(part(run.session, "status")).words == "Running"


async def test_it_forwards_what_happens(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    page = await open_page(path_of(run.session), alice)

    answer = await in_thread(factories.say, run, "Three, *done*.")

    await page.until(lambda dom: "Three, done." in dom.text)
    assert page.dom.find(f"message-{answer.pk}").attributes["data-role"] == "assistant"


async def test_streamed_text_arrives_before_the_end(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    page = await open_page(path_of(run.session), alice)
    message = await start_stream(run)
    await page.until(lambda dom: dom.has(f"message-{message.pk}-text"))

    await bus.publish_delta(delta(message, 0, "One, "))
    await bus.publish_delta(delta(message, 0, "One, two & <b>three</b>"))

    await page.until(lambda dom: "three" in text_of(dom, message))
    assert text_of(page.dom, message) == "One, two & <b>three</b>"


async def test_streamed_text_waits_for_nothing_that_others_read(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    page = await open_page(path_of(run.session), alice)
    message = await start_stream(run)
    await page.until(lambda dom: dom.has(f"message-{message.pk}-text"))
    release = threading.Event()
    reading = spawn(in_thread(release.wait, 60), name="a slow read of another socket")

    await bus.publish_delta(delta(message, 0, "One, "))

    await page.until(lambda dom: "One" in text_of(dom, message))
    release.set()
    await reading


async def test_a_delta_behind_a_gap_is_read_from_the_row(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    page = await open_page(path_of(run.session), alice)
    message = await start_stream(run, "One, two, ")
    await page.until(lambda dom: dom.has(f"message-{message.pk}-text"))

    await in_thread(blocks.save_stream, message.pk, "One, two, three, fo")
    await bus.publish_delta(delta(message, 19, "ur, five"))

    await page.until(lambda dom: "five" in text_of(dom, message))
    assert text_of(page.dom, message) == "One, two, three, four, five"


async def test_a_socket_that_opens_mid_stream_repeats_nothing(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    message = await start_stream(run, "One, two, ")
    page = await open_page(path_of(run.session), alice)

    await bus.publish_delta(delta(message, 5, "two, three"))

    await page.until(lambda dom: "three" in text_of(dom, message))
    assert text_of(page.dom, message) == "One, two, three"


async def test_a_finished_block_is_replaced_once_by_its_html(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    message = await start_stream(run, "**bold")
    page = await open_page(path_of(run.session), alice)

    await in_thread(blocks.finish_stream, message.pk, text="**bold**")
    await page.until(lambda dom: dom.find_all("strong"))
    await bus.publish_delta(delta(message, 6, "** late"))

    assert await page.hears_nothing()
    assert not page.dom.has(f"message-{message.pk}-text")


async def test_a_gap_in_the_seqs_is_filled(
    run: Run, alice: User, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await open_page(path_of(run.session), alice)
    with monkeypatch.context() as patched:
        patched.setattr(bus, "ring", lambda group, message: None)
        await in_thread(factories.say, run, "Nobody rang.")

    await in_thread(factories.say, run, "Somebody rang.")

    await page.until(lambda dom: "Somebody rang." in dom.text)
    words = page.dom.find(part(run.session, "items")).words
    assert words.index("Nobody rang.") < words.index("Somebody rang.")
    assert words.count("Nobody rang.") == 1


async def test_a_long_gap_is_filled_by_a_snapshot(
    run: Run, alice: User, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await open_page(path_of(run.session), alice)
    with monkeypatch.context() as patched:
        patched.setattr(bus, "ring", lambda group, message: None)
        for number in range(30):
            await in_thread(factories.say, run, f"Line {number}.")

    await in_thread(factories.say, run, "The last.")

    await page.until(lambda dom: "The last." in dom.text)
    assert page.dom.text.count("Line 29.") == 1


@pytest.mark.usefixtures("deaf")
async def test_lost_doorbells_are_healed_by_the_poller(
    run: Run, alice: User, open_page: OpenPage, override_conf: Callable[..., None]
) -> None:
    override_conf(watch_poll_seconds=0.05)
    page = await open_page(path_of(run.session), alice)

    message = await start_stream(run, "One, ")
    await page.until(lambda dom: dom.has(f"message-{message.pk}-text"))
    await in_thread(blocks.save_stream, message.pk, "One, two, ")
    await page.until(lambda dom: "two" in text_of(dom, message))
    assert text_of(page.dom, message) == "One, two, "
    await in_thread(blocks.finish_stream, message.pk, text="One, two, *three*")

    await page.until(lambda dom: dom.find_all("em"))
    assert page.dom.find(f"message-{message.pk}").words.count("three") == 1


@pytest.mark.usefixtures("deaf")
async def test_the_inbox_finds_lost_doorbells_too(
    run: Run, alice: User, open_page: OpenPage, override_conf: Callable[..., None]
) -> None:
    override_conf(watch_poll_seconds=0.05)
    page = await open_page("/ws/home/?view=inbox", alice)

    approval = await in_thread(factories.ask_approval, run)

    await page.until(lambda dom: dom.has(f"approval-{approval.pk}"))
    assert page.dom.find("pending-count").words.startswith("1")


async def test_a_page_that_comes_back_gets_only_what_it_lacks(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    first = await open_page(path_of(run.session), alice)
    message = await start_stream(run, "One, ")
    await first.until(lambda dom: dom.has(f"message-{message.pk}-text"))
    await first.socket.disconnect()
    kept = first.dom.find(f"message-{run.trigger_message_id}")
    seq = first.dom.find(part(run.session, "position")).attributes["data-live-seq"]

    await in_thread(blocks.save_stream, message.pk, "One, two, ")
    await in_thread(factories.say, run, "Meanwhile.")
    back = Browser(f"{path_of(run.session)}?seq={seq}", alice)
    await back.take_up(first.dom)
    await bus.publish_delta(delta(message, 5, "two, three"))

    await back.until(lambda dom: "three" in text_of(dom, message))
    assert text_of(back.dom, message) == "One, two, three"
    assert "Meanwhile." in back.dom.find(part(run.session, "items")).words
    assert any(node is kept for node in back.dom.walk())
    await back.socket.disconnect()


@pytest.mark.parametrize("seq", ["", "-1", "x", "9" * 30, "%ff"])
async def test_a_place_that_is_none_brings_a_snapshot(
    seq: str, run: Run, alice: User, open_page: OpenPage
) -> None:
    page = await open_page(f"{path_of(run.session)}?seq={seq}", alice)

    assert "Count to three" in page.dom.find(part(run.session, "items")).words


@pytest.mark.usefixtures("deaf")
async def test_the_poller_survives_what_goes_wrong(
    run: Run,
    alice: User,
    open_page: OpenPage,
    override_conf: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    override_conf(watch_poll_seconds=0.05)
    look_up, failed = watch.look_up, threading.Event()

    def fail_once(watchers: list[watch.Watcher]) -> list[watch.Finding]:
        if not failed.is_set():
            failed.set()
            raise OperationalError("the database is away")
        return look_up(watchers)

    monkeypatch.setattr(watch, "look_up", fail_once)
    page = await open_page(path_of(run.session), alice)
    await in_thread(failed.wait, PATIENCE_SECONDS)

    await in_thread(factories.say, run, "Nobody rang.")

    await page.until(lambda dom: "Nobody rang." in dom.text)
    assert "the poller could not look" in caplog.messages


class BrokenPage:
    """A socket of the poller's whose page can't be brought up to date."""

    watched_session_id = None

    def __init__(self, user: User) -> None:
        self.login = {"user": user}
        self.looks = 0
        self.looked_again = asyncio.Event()

    async def look(self, finding: watch.Finding) -> None:
        self.looks += 1
        if self.looks > 1:
            self.looked_again.set()
        raise OperationalError("no page")


@pytest.mark.usefixtures("deaf")
async def test_one_broken_page_does_not_keep_the_others_from_the_news(
    run: Run,
    alice: User,
    open_page: OpenPage,
    override_conf: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    override_conf(watch_poll_seconds=0.05)
    page = await open_page(path_of(run.session), alice)
    broken = BrokenPage(alice)
    watch.join(broken)

    await in_thread(factories.say, run, "Nobody rang.")

    await page.until(lambda dom: "Nobody rang." in dom.text)
    await asyncio.wait_for(broken.looked_again.wait(), PATIENCE_SECONDS)
    watch.leave(broken)
    assert "a page could not be brought up to date" in caplog.messages


async def test_strangers_are_closed(run: Run, charlie: User) -> None:
    assert await Browser(path_of(run.session), charlie).close_code() == 4404
    nowhere = f"/ws/session/{uuid.uuid4()}/"
    assert await Browser(nowhere, charlie).close_code() == 4404


async def test_nobody_gets_a_socket_without_signing_in(run: Run) -> None:
    nobody: Any = AnonymousUser()

    assert await Browser(path_of(run.session), nobody).close_code() == 4401
    assert await Browser("/ws/home/", nobody).close_code() == 4401


async def test_an_unknown_path_is_closed(alice: User) -> None:
    assert await Browser("/ws/elsewhere/", alice).close_code() == 4404


async def test_others_hear_nothing_of_a_session(
    run: Run, alice: User, charlie: User, open_page: OpenPage
) -> None:
    await open_page(path_of(run.session), alice)
    stranger = await open_page("/ws/home/?view=inbox", charlie)

    await in_thread(factories.ask_approval, run)
    await in_thread(factories.end_turn, run)

    assert await stranger.hears_nothing()


async def test_whatever_a_browser_sends_is_ignored(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    page = await open_page(path_of(run.session), alice)

    await page.socket.send_to('{"type": "session.stop", "decision": "approve"}')
    await page.socket.send_to(bytes_data=b"\x00")

    assert await page.hears_nothing()


async def test_a_revoked_share_closes_the_socket(
    run: Run, bob: User, open_page: OpenPage, override_conf: Callable[..., None]
) -> None:
    override_conf(watch_poll_seconds=0.05)
    share = await in_thread(
        Share.objects.create, session=run.session, user=bob, right=ShareRight.VIEW
    )
    page = await open_page(path_of(run.session), bob)

    await in_thread(share.delete)

    assert await page.closed_with() == 4403


async def test_a_switched_off_account_is_closed_by_the_next_event(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    page = await open_page(path_of(run.session), alice)

    await in_thread(User.objects.filter(pk=alice.pk).update, is_active=False)
    await in_thread(sessions.rename_session, run.session, "Whatever")

    assert await page.closed_with() == 4403


async def test_signing_out_closes_the_sockets_of_that_login(
    run: Run, alice: User, override_conf: Callable[..., None]
) -> None:
    override_conf(watch_poll_seconds=0.05)
    client = Client()
    await in_thread(client.force_login, alice)
    page = Browser(path_of(run.session), alice)
    page.scope["session"] = client.session
    await page.open()

    await in_thread(client.logout)

    assert await page.closed_with() == 4403


async def test_the_poller_ends_with_the_last_socket(
    run: Run, alice: User, override_conf: Callable[..., None]
) -> None:
    override_conf(watch_poll_seconds=0.01)
    page = Browser(path_of(run.session), alice)
    await page.open()
    poller = watch._poller
    assert poller is not None
    assert not poller.done()

    await page.socket.disconnect()

    await poller
    assert watch._watchers == set()


async def test_a_decision_reaches_everybody_who_watches(
    run: Run, alice: User, bob: User, open_page: OpenPage
) -> None:
    await in_thread(
        Share.objects.create, session=run.session, user=bob, right=ShareRight.OPERATE
    )
    approval = await in_thread(factories.ask_approval, run)
    pages = [
        await open_page(path_of(run.session), alice),
        await open_page(path_of(run.session), bob),
        await open_page("/ws/home/?view=inbox", bob),
    ]

    await in_thread(decide_approval, approval, bob, Decision(is_approved=True))

    card_id = f"approval-{approval.pk}"
    for page in pages:
        await page.until(
            lambda dom: dom.find(card_id).attributes["data-state"] == "approved"
        )
        assert "approved by bob" in page.dom.find(card_id).words


async def test_the_list_shows_a_new_session_at_once(
    alice: User, open_page: OpenPage
) -> None:
    page = await open_page("/ws/home/?view=list", alice)
    assert "No agents yet" in page.dom.text

    made = await in_thread(factories.make_session, alice, "Water the plants")

    await page.until(lambda dom: dom.has(f"session-{made.pk}-row"))
    assert "No agents yet" not in page.dom.text
    assert "Water the plants" in page.dom.find("rail-sessions").words


async def test_a_queued_message_stands_above_the_composer_until_it_is_delivered(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    page = await open_page(path_of(run.session), alice)
    queue, items = part(run.session, "queue"), part(run.session, "items")

    await in_thread(messages.send_message, run.session, author=alice, text="Then stop")
    await page.until(lambda dom: "Then stop" in dom.find(queue).text)
    assert "Then stop" not in page.dom.find(items).text

    await in_thread(factories.end_turn, run)
    await page.until(lambda dom: "Then stop" in dom.find(items).text)
    await page.until(lambda dom: "Then stop" not in dom.find(queue).text)


@pytest.mark.parametrize("hears", [True, False])
async def test_a_deleted_session_says_so_in_another_tab(
    session: AgentSession,
    alice: User,
    open_page: OpenPage,
    override_conf: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    hears: bool,
) -> None:
    override_conf(watch_poll_seconds=0.05)
    page = await open_page(path_of(session), alice)
    page.dom = parse(
        f'<main id="main">{page.dom.find(part(session, "items")).outline()}</main>'
        f'<div id="{part(session, "header")}"></div>'
    )
    if not hears:
        monkeypatch.setattr(bus, "ring", lambda group, message: None)

    await in_thread(sessions.delete_session, session, alice)

    assert await page.closed_with() == 4410
    assert "This session was deleted" in page.dom.find("main").words
    assert "Count to three" not in page.dom.text


async def test_the_list_and_the_rail_lose_a_deleted_session(
    session: AgentSession, alice: User, open_page: OpenPage
) -> None:
    page = await open_page("/ws/home/?view=list", alice)
    assert page.dom.has(f"session-{session.pk}-row")

    await in_thread(sessions.delete_session, session, alice)

    await page.until(lambda dom: not dom.has(f"session-{session.pk}-row"))
    await page.until(
        lambda dom: "Count to three" not in dom.find("rail-sessions").words
    )


async def test_a_title_arrives_everywhere(
    session: AgentSession, alice: User, open_page: OpenPage
) -> None:
    here = await open_page(path_of(session), alice)
    there = await open_page("/ws/home/?view=list", alice)

    await in_thread(metadata.apply_title, session.pk, "Counting up")

    await here.until(lambda dom: "Counting up" in dom.find(part(session, "title")).text)
    row = f"session-{session.pk}-row"
    await there.until(lambda dom: "Counting up" in dom.find(row).words)


async def test_resuming_opens_the_composer_in_another_tab(
    session: AgentSession, alice: User, open_page: OpenPage
) -> None:
    page = await open_page(path_of(session), alice)
    closed = part(session, "closed")

    await in_thread(sessions.close_session, session, alice)
    await page.until(lambda dom: "Resume" in dom.find(closed).words)
    assert page.dom.find(part(session, "status")).words == "Closed"

    await in_thread(sessions.resume_session, session, alice)
    await page.until(lambda dom: dom.find(closed).words == "")
    assert page.dom.find(part(session, "status")).words == "Stopped"
