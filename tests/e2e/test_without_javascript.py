"""Every action works in a browser without JavaScript; a reload shows what is new."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from agents.demo.server import DemoServer
from tests.server import PASSWORD, until

from .people import Person, Session, Window

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

    _reload_until(session, "yes.txt")
    session.button("Approve").click()
    _reload_until(session, "no.txt")
    session.button("Deny").click()
    _reload_until(session, "Finished")
    assert (session.folder / "yes.txt").read_text().strip() == "yes"
    assert not (session.folder / "no.txt").exists()
    expect(session.cards.last).to_contain_text("denied by olivia")

    session.send("demo: hold plain after 12 words")
    _reload_until(session, "-12")
    session.button("Stop").click()
    _reload_until(session, "Stopped here")
    session.send("say the end")
    _reload_until(session, "the end", role="assistant")


def _sign_in(person: Person) -> Page:
    page = person.open()
    page.get_by_label("Username").fill("olivia")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    return page


def _reload_until(session: Session, words: str, role: str = "") -> None:
    place = session.page.locator(f"article[data-role='{role}']" if role else "main")

    def is_there() -> bool:
        session.page.goto(f"{session.person.address}{session.path}")
        texts = place.filter(has_text=re.compile(re.escape(words)))
        return texts.count() > 0

    until(is_there, words)
