"""The queue: what is written while the agent works, in every tab alike."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from .people import Person, Session

pytestmark = [pytest.mark.e2e, pytest.mark.cli]


def chips(session: Session) -> Locator:
    return session.page.locator(".queue-chip .queue-chip__text")


def chip(session: Session, text: str) -> Locator:
    return session.page.locator(".queue-chip", has_text=text)


@pytest.fixture
def gate(request: pytest.FixtureRequest) -> str:
    """Of this test alone: all share one demo model, where an open gate stays open."""
    return f"queue-of-{request.node.name}"


@pytest.fixture
def busy(olivia: Person, gate: str) -> Session:
    """An agent that works until it is told to go on, with three messages waiting."""
    session = olivia.start_agent(f"demo: say Working.\ndemo: hold {gate}")
    olivia.demo.state.wait_until_held(gate)
    for number, text in enumerate(("say one", "say two", "say three"), start=1):
        session.send(text)
        expect(chips(session)).to_have_count(number)
    return session


def test_chips_are_changed_moved_and_taken_out_in_every_tab(
    busy: Session, olivia: Person, gate: str
) -> None:
    other = olivia.enter(busy)
    expect(chips(other)).to_have_text(["say one", "say two", "say three"])

    chip(busy, "say one").locator("summary").click()
    chip(busy, "say one").get_by_label("Queued message").fill("say first")
    chip(busy, "say one").get_by_role("button", name="Save").click()
    expect(chips(other)).to_have_text(["say first", "say two", "say three"])

    chip(other, "say three").get_by_role("button", name="Move up").click()
    expect(chips(busy)).to_have_text(["say first", "say three", "say two"])

    chip(busy, "say two").get_by_role("button", name="Remove").click()
    expect(chips(other)).to_have_text(["say first", "say three"])

    olivia.demo.state.release(gate)
    expect(other.replies.last).to_contain_text("three")
    expect(chips(other)).to_have_count(0)
    busy.ends_as("Completed", turns=3)
    assert busy.texts("user")[1:] == ["say first", "say three"]


def test_send_now_interrupts_and_comes_first(busy: Session, olivia: Person) -> None:
    other = olivia.enter(busy)

    chip(other, "say three").get_by_role("button", name="Send now").click()

    expect(busy.replies.last).to_contain_text("three")
    expect(chips(busy)).to_have_text(["say one", "say two"])
    assert "say one" not in busy.last_call
