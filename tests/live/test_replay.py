"""A page that comes back gets what it lacks, and keeps what was loaded on it."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from agents.domain import blocks
from agents.live import frames, replay
from agents.live.pages import LivePage
from agents.models import Run, SessionEvent, User
from agents.models.messages import MessageRole
from tests import factories
from tests.dom import Node, apply_frame, parse

from .test_frames import ACTS, Act, snapshot

pytestmark = pytest.mark.django_db


def opened(user: User, run: Run) -> tuple[LivePage, Node]:
    """A page whose socket has just opened."""
    page = LivePage(user=user, session_id=run.session_id)
    dom = parse(replay.first_frame(page, None))
    for node in dom.walk():
        node.attributes.pop("hx-swap-oob", None)
    return page, dom


def position(dom: Node, run: Run) -> str:
    return dom.find(f"session-{run.session_id}-position").attributes["data-live-seq"]


def come_back(user: User, run: Run, dom: Node) -> str:
    """A new socket of the page, which says what it has. Returns: the first frame."""
    page = LivePage(user=user, session_id=run.session_id)
    known = position(dom, run)
    frame = replay.first_frame(page, int(known) if known else None)
    assert apply_frame(dom, frame) == []
    return frame


def items(dom: Node, run: Run) -> Node:
    return dom.find(f"session-{run.session_id}-items")


def is_snapshot(frame: str, run: Run) -> bool:
    return parse(frame).has(f"session-{run.session_id}-items")


def equals_a_fresh_page(dom: Node, run: Run, user: User) -> bool:
    _, expected = snapshot(user, run.session)
    parts = ("title", "status", "facts", "actions", "items", "tail", "queue", "menu")
    return [
        dom.find(f"session-{run.session_id}-{part}").outline() for part in parts
    ] == [expected.find(f"session-{run.session_id}-{part}").outline() for part in parts]


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_a_page_cut_off_anywhere_equals_a_fresh_one_when_it_is_back(
    act: Act, run: Run, alice: User
) -> None:
    first_page, first_dom = opened(alice, run)
    act(run, alice)
    events = list(SessionEvent.objects.filter(seq__gt=first_page.seq))

    for seen in {0, 1, len(events) // 2, len(events)}:
        page, dom = copy.deepcopy((first_page, first_dom))
        for event in events[:seen]:
            apply_frame(dom, frames.event_frame(page, event.type, event.data))
            page.seq = event.seq
            apply_frame(dom, frames.position_frame(page))

        come_back(alice, run, dom)

        assert equals_a_fresh_page(dom, run, alice)


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_what_happened_meanwhile_is_put_between_what_is_there(
    act: Act, run: Run, alice: User
) -> None:
    page, dom = opened(alice, run)
    for number in range(3):
        factories.call_tool(run, f"toolu_before_{number}")
    apply_frame(dom, replay.news(page))
    marker = Node("p", {"id": "of-the-reader"})
    items(dom, run).children.insert(0, marker)

    act(run, alice)
    frame = come_back(alice, run, dom)

    is_other_branch = act.__name__ in ("edit", "switch_back")
    assert is_snapshot(frame, run) is is_other_branch
    if not is_other_branch:
        items(dom, run).children.remove(marker)
    assert equals_a_fresh_page(dom, run, alice)


def test_what_a_reader_loaded_and_opened_is_left_alone(run: Run, alice: User) -> None:
    factories.call_tool(run)
    factories.return_result(run)
    _, dom = opened(alice, run)
    card = next(node for node in items(dom, run).walk() if node.tag == "details")
    card.attributes["open"] = ""
    items(dom, run).children.insert(0, Node("p", {"id": "loaded-before"}))

    factories.say(run, "Meanwhile.")
    frame = come_back(alice, run, dom)

    assert not is_snapshot(frame, run)
    assert dom.has("loaded-before")
    assert "open" in card.attributes
    assert any(node is card for node in dom.walk())
    assert items(dom, run).text.count("Meanwhile.") == 1


def test_a_text_that_streams_is_there_up_to_now(run: Run, alice: User) -> None:
    message = blocks.start_stream(run, role=MessageRole.ASSISTANT)
    blocks.save_stream(message.pk, "One, ")
    _, dom = opened(alice, run)

    blocks.save_stream(message.pk, "One, two, ")
    frame = come_back(alice, run, dom)

    assert not is_snapshot(frame, run)
    assert dom.find(f"message-{message.pk}-text").text == "One, two, "


def test_after_the_return_deltas_go_on_where_the_text_ends(
    run: Run, alice: User
) -> None:
    message = blocks.start_stream(run, role=MessageRole.ASSISTANT)
    blocks.save_stream(message.pk, "One, two, ")
    page = LivePage(user=alice, session_id=run.session_id)

    replay.first_frame(page, LivePage(user=alice, session_id=run.session_id).seq)

    assert page.streams == {message.pk: len("One, two, ")}


def test_much_that_happened_is_a_snapshot(
    run: Run, alice: User, override_conf: Callable[..., None]
) -> None:
    _, dom = opened(alice, run)
    for number in range(3):
        factories.say(run, f"Line {number}.")

    override_conf(replay_max_events=5)

    assert is_snapshot(come_back(alice, run, dom), run)
    assert items(dom, run).text.count("Line 2.") == 1


@pytest.mark.parametrize("since", [None, 10_000])
def test_a_place_that_nobody_knows_is_a_snapshot(
    since: int | None, run: Run, alice: User
) -> None:
    page = LivePage(user=alice, session_id=run.session_id)

    assert is_snapshot(replay.first_frame(page, since), run)


def test_events_that_are_gone_are_a_snapshot(run: Run, alice: User) -> None:
    _, dom = opened(alice, run)
    factories.say(run, "One.")
    SessionEvent.objects.filter(seq__gt=int(position(dom, run)))[0].delete()

    assert is_snapshot(come_back(alice, run, dom), run)


def test_a_page_that_may_show_more_names_no_place(run: Run, alice: User) -> None:
    page, _ = opened(alice, run)

    page.exact_from = page.seq + 1
    unsure = frames.position_frame(page)
    page.seq += 1

    assert 'data-live-seq=""' in unsure
    assert f'data-live-seq="{page.seq}"' in frames.position_frame(page)
