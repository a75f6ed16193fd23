"""Every action works in a browser without JavaScript; a reload shows what is new."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from agents.demo.server import DemoServer
from tests.server import PASSWORD, until

from .people import Person, Window

pytestmark = [pytest.mark.e2e, pytest.mark.cli]


def test_signing_in_starting_reading_deciding_stopping_and_sending(
    olivia: Person, open_window: Callable[..., Window], demo: DemoServer
) -> None:
    plain = Person(open_window(java_script_enabled=False), olivia.server, demo)
    _sign_in(plain)
    session = plain.start_agent(
        "write the file yes.txt with the text yes"
        " then write the file no.txt with the text no"
    )

    _reload_until(session.pending.filter(has_text="yes.txt"))
    session.button("Approve").click()
    _reload_until(session.pending.filter(has_text="no.txt"))
    session.button("Deny").click()
    _reload_until(session.page.locator(".turn-end"))
    assert (session.folder / "yes.txt").read_text().strip() == "yes"
    assert not (session.folder / "no.txt").exists()
    expect(session.cards.last).to_contain_text("denied by olivia")

    session.send("demo: hold plain after 12 words")
    _reload_until(session.reply.filter(has_text="-12"))
    session.button("Stop").click()
    _reload_until(session.replies.filter(has_text="Stopped here"))
    session.send("say the end")
    _reload_until(session.reply.filter(has_text="the end"))


def _sign_in(person: Person) -> Page:
    page = person.open()
    page.get_by_label("Username").fill("olivia")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    return page


def _reload_until(wanted: Locator) -> None:
    """Ask for the page again; reloading one that a form answered would send twice."""

    def is_there() -> bool:
        wanted.page.goto(wanted.page.url)
        return wanted.count() > 0

    until(is_there, str(wanted))
