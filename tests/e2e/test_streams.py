"""Streams that are stopped, reloaded and cut: nothing is lost, nothing comes twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import WebSocket, expect

from agents.execution.processes import find_marked
from tests.server import Server, manage, until

from .people import Person, Session
from .relay import Relay

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

CUTS = 20
WORDS_PER_CUT = 6


@pytest.fixture
def relay(server: Server) -> Iterator[Relay]:
    with Relay(server) as relay:
        yield relay


def test_stop_keeps_what_was_written_and_ends_every_process(olivia: Person) -> None:
    session = olivia.start_agent("demo: hold stopped after 30 words\ndemo: say Never.")
    expect(session.reply).to_have_text(re.compile(r"-30\s*$"))
    assert find_marked(session.id)

    session.button("Stop").click()
    session.ends_as("Stopped")

    until(lambda: not find_marked(session.id), "the end of its processes")
    expect(session.reply).to_have_text(re.compile(r"^amber-1 .*-30\s*$"))
    expect(session.replies.last).to_contain_text("Stopped here")
    assert session.stored_reply.split()[-1].endswith("-30")
    assert "Never." not in session.stored_reply

    session.demo.state.release("stopped")
    session.button("Continue").click()
    session.ends_as("Completed", turns=2)
    expect(session.reply).to_contain_text("Never.")

    session.send("what did I say before?")
    session.ends_as("Completed", turns=3)
    expect(session.reply).to_contain_text("hold stopped after 30 words")


def test_a_reload_in_the_middle_of_a_stream_shows_all_of_it(olivia: Person) -> None:
    session = olivia.start_agent("demo: hold reloaded after 40 words")
    expect(session.reply).to_have_text(re.compile(r"-40\s*$"))
    until(lambda: len(session.stored_reply.split()) == 40, "the stored half")

    session.page.reload()
    expect(session.reply).to_have_text(re.compile(r"^amber-1 .*-40\s*$"))
    session.demo.state.release("reloaded")
    session.ends_as("Completed")

    _shows_what_is_stored(session, words=80)


def test_a_socket_killed_twenty_times_loses_nothing(
    sign_in: Callable[..., Person], relay: Relay
) -> None:
    person = sign_in(relay)
    person.window.allow_lost_connections()
    holds = [f"demo: hold cut-{n} after {WORDS_PER_CUT} words" for n in range(CUTS)]
    session = person.start_agent("\n".join(holds))
    sockets = _live_sockets(session)
    state = session.demo.state

    for number in range(CUTS):
        state.wait_until_held(f"cut-{number}")
        sockets.clear()
        relay.cut()
        state.release(f"cut-{number}")
        session.until(lambda: sockets, "the next socket")
    session.ends_as("Completed")

    _shows_what_is_stored(session, words=CUTS * WORDS_PER_CUT * 2)


@pytest.mark.parametrize("is_told", [True, False], ids=["replayed", "snapshot"])
def test_what_a_reader_loaded_and_opened_outlives_the_socket(
    sign_in: Callable[..., Person], relay: Relay, is_told: bool
) -> None:
    person = sign_in(relay)
    person.window.allow_lost_connections()
    session = person.start_agent("say hello")
    session.ends_as("Completed")
    code = f"from tests.e2e import seed; seed.add_messages('{session.id}', 200)"
    done = manage(session.server.data_dir, "shell", "-v", "0", "-c", code)
    assert done.returncode == 0, done.stderr
    session.reload()
    gate = f"far-{is_told}"
    script = 'demo: tool Glob {"pattern": "*"}\ndemo: stream 900 words'
    session.send(f"{script}\ndemo: hold {gate} after 6 words")
    session.demo.state.wait_until_held(gate)
    oldest = session.transcript.get_by_text("message number 1 of the long one")
    scroll = "void scrollTo(0, document.scrollingElement.scrollTop ? 0 : 1)"
    session.until(lambda: oldest.count() or session.page.evaluate(scroll), "the oldest")
    card = session.transcript.locator("details.tool-card").last
    card.locator("summary").click()
    expect(card).to_have_attribute("open", "")
    top = card.bounding_box()
    sockets = _live_sockets(session)

    relay.refuse()
    if not is_told:
        place = session.page.locator("[data-live-seq]")
        place.evaluate("it => { it.dataset.liveSeq = ''; }")
    session.demo.state.release(gate)
    until(lambda: session.stored_status == "completed", "the turn's end")
    relay.refuse(refuses=False)
    session.page.evaluate("window.dispatchEvent(new Event('online'))")
    session.until(lambda: sockets, "the next socket")
    session.ends_as("Completed", turns=2)

    expect(session.reply).to_have_text(session.stored_reply)
    expect(oldest).to_have_count(1)
    expect(card).to_have_attribute("open", "")
    assert card.bounding_box() == top


def _live_sockets(session: Session) -> list[WebSocket]:
    """The page's coming sockets, each from its first frame on."""
    alive: list[WebSocket] = []

    def opened(socket: WebSocket) -> None:
        socket.once("framereceived", lambda _: alive.append(socket))

    session.page.on("websocket", opened)
    return alive


def _shows_what_is_stored(session: Session, *, words: int) -> None:
    stored = session.stored_reply.split()
    assert [word.rpartition("-")[2] for word in stored] == [
        str(number) for number in range(1, words + 1)
    ]
    expect(session.reply).to_have_text(" ".join(stored))
    expect(session.replies).to_have_count(1)
    ids = session.transcript.locator("[id]").evaluate_all("all => all.map(e => e.id)")
    assert len(ids) == len(set(ids))
