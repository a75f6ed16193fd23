"""Long chats in Chromium: the meter moves; the model forgets, the page does not."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .people import Person, Session

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

BIG = "demo: say It is big.\ndemo: usage input 10 output 10 cache_read 149980"
TOO_LONG = "demo: error 400 message prompt is too long: 210000 tokens > 200000 maximum"


def choose(session: Session, action: str) -> None:
    session.page.get_by_label("Session menu").click()
    session.button(action).click()


def test_the_meter_follows_and_clear_lets_the_model_forget(olivia: Person) -> None:
    session = olivia.start_agent("say hello")
    session.ends_as("Completed")
    meter = session.page.locator(f"#session-{session.id}-context")
    expect(meter).to_contain_text("of 1M")
    session.send(BIG)
    session.ends_as("Completed", turns=2)
    expect(meter).to_contain_text("15% of 1M")
    other_tab = olivia.enter(session)

    choose(session, "Clear")

    divider = session.transcript.get_by_role("separator")
    expect(divider).to_contain_text("The model starts afresh here")
    expect(other_tab.transcript.get_by_role("separator")).to_have_count(1)
    expect(meter).to_contain_text("0% of 1M")
    expect(session.transcript).to_contain_text("It is big.")
    session.send("what did I say before?")
    session.ends_as("Completed", turns=3)
    expect(session.reply).not_to_contain_text("say hello")
    assert "It is big." not in session.last_call
    session.reload()
    expect(divider).to_have_count(1)
    expect(session.transcript).to_contain_text("It is big.")


def test_compact_says_what_became_of_the_conversation(olivia: Person) -> None:
    session = olivia.start_agent("say hello")
    session.ends_as("Completed")
    session.send("say more")
    session.ends_as("Completed", turns=2)

    choose(session, "Compact")

    told = session.notices.last
    expect(told).to_contain_text(re.compile(r"was summarised: \S+ → \S+ tokens"))
    session.ends_as("Completed", turns=3)
    expect(session.transcript).to_contain_text("say hello")


def test_what_became_too_long_offers_ways_on(olivia: Person) -> None:
    session = olivia.start_agent("say hello")
    session.ends_as("Completed")
    session.send(TOO_LONG)
    session.ends_as("Error", turns=2)
    expect(session.notices.last).to_contain_text("become too long for the model")
    steps = session.page.locator(f"#session-{session.id}-tail")
    for action in ("Compact", "Branch to new session", "Clear"):
        expect(steps.get_by_role("button", name=action, exact=True)).to_be_visible()

    steps.get_by_role("button", name="Clear", exact=True).click()

    expect(session.transcript.get_by_role("separator")).to_be_visible()
    expect(steps.get_by_role("button")).to_have_count(0)
    session.send("say afresh")
    session.ends_as("Completed", turns=3)
    assert "say hello" not in session.last_call
