"""kill -9 of the server: everything is still there, and everything can go on."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from agents.demo.server import DemoServer
from agents.execution.processes import find_marked
from tests.server import Server, until

from .conftest import cookies_of_owner
from .people import Person, Session, Window

pytestmark = [pytest.mark.e2e, pytest.mark.cli]


@pytest.fixture
def person(
    make_server: Callable[..., Server],
    open_window: Callable[..., Window],
    demo: DemoServer,
) -> Person:
    server = make_server()
    person = Person(open_window(), server, demo)
    person.remember(cookies_of_owner(server))
    return person


def test_a_killed_server_loses_nothing_and_one_click_goes_on(person: Person) -> None:
    writing = _in_the_middle_of_a_stream(person)
    asking = person.start_agent("write the file kept.txt with the text Kept")
    expect(asking.pending).to_contain_text("kept.txt")

    _kill_and_start_again(person, writing, asking)

    assert (writing.stored_status, asking.stored_status) == (
        "stopped",
        "waiting_approval",
    )
    _goes_on_with_one_click(person.enter(writing))
    _can_still_be_approved(person.enter(asking))


def _in_the_middle_of_a_stream(person: Person) -> Session:
    session = person.start_agent("say the word is heron")
    session.ends_as("Completed")
    session.send("demo: hold killed after 25 words\ndemo: say The end.")
    expect(session.reply).to_have_text(re.compile(r"-25\s*$"))
    until(lambda: len(session.stored_reply.split()) == 25, "the half that is stored")
    return session


def _kill_and_start_again(person: Person, *sessions: Session) -> None:
    for session in sessions:
        session.page.close()
    person.server.kill()
    ids = [session.id for session in sessions]
    until(lambda: not any(map(find_marked, ids)), "the end of all processes")
    person.server.start()
    person.address = person.server.address


def _goes_on_with_one_click(session: Session) -> None:
    expect(session.status).to_have_text("Stopped")
    expect(session.reply).to_have_text(re.compile(r"^amber-1 .*-25\s*$"))
    expect(session.replies.last).to_contain_text("Stopped here")
    expect(session.notices).to_contain_text("The server stopped")

    session.demo.state.release("killed")
    session.button("Continue").click()
    session.ends_as("Completed", turns=3)

    expect(session.reply).to_contain_text("The end.")
    told = [
        (message["role"], _text(message["content"]))
        for message in session.calls[-1].messages
    ]
    assert told[0][0] == "user"
    assert "say the word is heron" in told[0][1]
    assert ("assistant", "the word is heron") in told
    assert sum("hold killed after" in text for _, text in told) == 1


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    assert isinstance(content, list)
    return "".join(block.get("text", "") for block in content)


def _can_still_be_approved(session: Session) -> None:
    expect(session.status).to_have_text("Needs you")
    expect(session.pending).to_contain_text("kept.txt")
    assert not (session.folder / "kept.txt").exists()

    session.button("Approve").click()
    expect(session.status).to_have_text("Completed")

    assert (session.folder / "kept.txt").read_text().strip() == "Kept"
    expect(session.cards.first).to_contain_text("approved by olivia")
    expect(session.pending).to_have_count(0)
