"""Where the page stands: what a person just asked for is in view."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Locator, expect

from .people import Person, Session, seed

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

LONG = f"demo: text {json.dumps('A line of many.' + 80 * ' No more.')} times 20"

# "At the next frame" is never: a busy machine is late with it as well.
_NO_FRAMES = "window.requestAnimationFrame = () => 0;"


def test_what_is_sent_from_further_up_is_in_view(olivia: Person) -> None:
    session = olivia.start_agent(LONG)
    session.ends_as("Completed")
    session.page.evaluate("scrollTo(0, 0)")
    expect(session.button("Jump to latest")).to_be_visible()

    session.send("say seen")

    session.ends_as("Completed", turns=2)
    asked = session.transcript.locator("article[data-role='user']").last
    expect(asked).to_be_in_viewport()
    expect(session.reply).to_have_text("seen")
    expect(session.reply).to_be_in_viewport()


def test_the_form_for_an_edit_stands_clear_of_the_queue(olivia: Person) -> None:
    session = olivia.start_agent(LONG)
    session.ends_as("Completed")
    session.send("demo: hold in-view")
    olivia.demo.state.wait_until_held("in-view")
    for number, text in enumerate(("say one", "say two", "say three"), start=1):
        session.send(text)
        expect(session.page.locator(".queue-chip")).to_have_count(number)
    edit = session.button("Edit message").last
    edit.scroll_into_view_if_needed()
    _put_just_above(edit, session.page.locator(".composer-dock"))

    edit.click()

    form = session.transcript.locator("form.edit-form")
    expect(form).to_be_visible()
    dock = session.page.locator(".composer-dock").bounding_box()
    button = form.get_by_role("button", name="Send edited message")
    expect(button).to_be_in_viewport()
    box = button.bounding_box()
    assert dock is not None
    assert box is not None
    assert box["y"] + box["height"] <= dock["y"]


def _put_just_above(element: Locator, dock: Locator) -> None:
    limit = dock.bounding_box()
    assert limit is not None
    element.evaluate(
        "(e, limit) => scrollBy(0, e.getBoundingClientRect().bottom - limit + 4)",
        limit["y"],
    )


def test_older_messages_wait_until_the_page_stands_at_its_end(olivia: Person) -> None:
    session = _long_conversation(olivia)
    asked: list[str] = []
    page = olivia.window.context.new_page()
    page.add_init_script(_NO_FRAMES)
    page.on("request", lambda request: asked.append(request.url))

    page.goto(olivia.address + session.path)

    expect(page.locator("html")).to_have_attribute("data-frames", "some")
    expect(page.get_by_text("message number 200 of")).to_be_in_viewport()
    assert [url for url in asked if "/older/" in url] == []
    assert any("/static/" in url for url in asked), "the control"
    page.evaluate("scrollTo(0, 0)")
    expect(page.get_by_text("message number 81 of")).to_be_attached()
    assert [url for url in asked if "/older/" in url] != []


def _long_conversation(olivia: Person) -> Session:
    session = olivia.start_agent("say begin")
    session.ends_as("Completed")
    seed(session, "add_messages", 200)
    return session
