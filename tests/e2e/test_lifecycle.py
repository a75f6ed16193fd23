"""A session's name, its folded calls, and its end, as people at two tabs see them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from agents.demo.server import DemoServer
from tests.server import Server

from .conftest import cookies_of_owner
from .people import Person, Session, Window

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

LOOK_AROUND = "\n".join(
    [
        f'demo: tool Bash {{"command": "echo {word}"}}'
        for word in ("one", "two", "three")
    ]
    + ["demo: hold {gate}"]
    + ['demo: tool Bash {"command": "echo four"}', "demo: say Done."]
)


def look_around(olivia: Person, gate: str) -> Session:
    """Three calls in a row, then a gate, then a fourth call."""
    task = LOOK_AROUND.replace("{gate}", gate)
    return olivia.start_agent(task, security_mode="full")


def test_a_title_arrives_while_the_agent_works(
    make_server: Callable[..., Server],
    open_window: Callable[..., Window],
    demo: DemoServer,
) -> None:
    server = make_server(OPENSWARM_GENERATE_TITLES="on")
    olivia = Person(open_window(), server, demo)
    olivia.remember(cookies_of_owner(server))

    session = olivia.start_agent("Please count the bees in the garden behind the house")

    expect(session.page.get_by_label("Name", exact=True)).to_have_value(
        "Please count the bees in the"
    )
    expect(session.page.locator("#rail-sessions")).to_contain_text(
        "Please count the bees in the"
    )


def test_calls_in_a_row_are_folded_and_stay_as_the_reader_left_them(
    olivia: Person,
) -> None:
    session = look_around(olivia, "folds")
    group = session.transcript.locator(".tool-group")
    expect(group.locator("> summary")).to_contain_text("3 calls")
    card = group.locator(".tool-card").first
    expect(card).not_to_be_visible()

    group.locator("> summary").click()
    card.locator("summary").click()
    expect(card.locator(".tool-card__body")).to_be_visible()
    session.demo.state.release("folds")
    session.ends_as("Completed")

    expect(group.locator("> summary")).to_contain_text("4 calls")
    expect(group.locator(".tool-card")).to_have_count(4)
    expect(card.locator(".tool-card__body")).to_be_visible()
    assert session.transcript.locator(".tool-group").count() == 1
    session.page.reload()
    expect(group.locator("> summary")).to_contain_text("4 calls")


def test_a_closed_session_is_read_and_resumed(olivia: Person) -> None:
    session = olivia.start_agent("say: hello")
    session.ends_as("Completed")
    other = olivia.enter(session)

    session.page.get_by_label("Session menu").click()
    session.button("Close session").click()
    expect(other.status).to_have_text("Closed")
    expect(other.page.get_by_label("Message", exact=True)).not_to_be_visible()
    expect(other.replies).to_have_count(1)

    other.button("Resume").click()
    expect(other.status).to_have_text("Stopped")
    other.send("say: again")
    other.ends_as("Completed", turns=2)
    expect(other.reply).to_have_text("again")


def test_a_deleted_session_is_gone_in_every_tab_and_from_the_disk(
    olivia: Person,
) -> None:
    session = olivia.start_agent("say: hello")
    session.ends_as("Completed")
    folder = session.folder
    assert folder.is_dir(), "the control"
    other = olivia.enter(session)
    expect(other.status).to_have_text("Completed")

    session.page.get_by_label("Session menu").click()
    session.page.get_by_role("link", name="Delete session…").click()
    session.button("Delete session").click()

    expect(session.page.locator("#toasts")).to_contain_text("is deleted.")
    expect(other.page.locator("#main")).to_contain_text("This session was deleted")
    expect(other.page.locator("#connection")).to_have_attribute("data-state", "live")
    expect(other.page.locator("#main")).not_to_contain_text("hello")
    assert other.until(lambda: not folder.exists(), "the end of its files")
