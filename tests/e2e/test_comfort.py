"""Drafts, keys, connection state, themes and phones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.server import Server

from .people import Person
from .relay import Relay

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
PAGES = (
    "/",
    "/sessions/new/",
    "/approvals/",
    "/settings/preferences/",
    "/settings/providers/",
    "/settings/providers/new/",
    "/settings/skills/",
    "/settings/skills/new/",
    "/settings/templates/new/",
    "/settings/people/",
    "/settings/password/",
    "/nothing-here/",
)


@pytest.fixture
def relay(server: Server) -> Iterator[Relay]:
    with Relay(server) as relay:
        yield relay


def test_a_draft_outlives_a_reload_and_enter_sends_it(olivia: Person) -> None:
    session = olivia.start_agent("say ready")
    session.ends_as("Completed")
    field = session.page.get_by_label("Message", exact=True)

    field.fill("say first line")
    field.press("Shift+Enter")
    field.press_sequentially("and the second")
    session.page.reload()
    expect(field).to_have_value("say first line\nand the second")

    field.press("Enter")
    expect(field).to_have_value("")
    session.ends_as("Completed", turns=2)
    assert session.texts("user")[-1] == "say first line\nand the second"

    session.page.reload()
    expect(field).to_have_value("")


def test_another_tabs_draft_outlives_a_message_sent_here(olivia: Person) -> None:
    session = olivia.start_agent("say ready")
    session.ends_as("Completed")
    other = olivia.enter(session)
    session.page.get_by_label("Message", exact=True).fill("say sent")
    draft = other.page.get_by_label("Message", exact=True)
    draft.fill("say later")

    session.button("Send").click()
    session.ends_as("Completed", turns=2)
    expect(session.page.get_by_label("Message", exact=True)).to_have_value("")
    other.page.reload()

    expect(draft).to_have_value("say later")


def test_a_lost_connection_is_not_a_stopped_run(
    sign_in: Callable[..., Person], relay: Relay
) -> None:
    person = sign_in(relay)
    person.window.allow_lost_connections()
    session = person.start_agent("demo: hold unplugged after 10 words")
    expect(session.reply).to_have_text(re.compile(r"-10\s*$"))
    banner = session.page.locator("#connection")
    expect(banner).to_have_attribute("data-state", "live")

    relay.refuse()
    expect(banner).to_have_attribute("data-state", "reconnecting")
    expect(banner.get_by_text("Reconnecting")).to_be_visible()
    expect(session.status).to_have_text("Running")
    session.page.get_by_label("Message", exact=True).fill("say kept")
    session.button("Send").click()
    expect(session.page.locator("#toasts")).to_contain_text("can’t be reached")
    expect(session.page.get_by_label("Message", exact=True)).to_have_value("say kept")

    relay.refuse(refuses=False)
    expect(banner).to_have_attribute("data-state", "live")
    session.demo.state.release("unplugged")
    session.ends_as("Completed")
    expect(session.reply).to_have_text(re.compile(r"^amber-1 .*-20\s*$"))


def test_a_theme_is_kept(olivia: Person) -> None:
    page = olivia.open()
    root = page.locator("html")
    light = _background(page)

    with page.expect_response("**/settings/theme/"):
        page.get_by_role("button", name="Dark").click()
    expect(root).to_have_attribute("data-theme", "dark")
    dark = _background(page)
    page.goto(olivia.address + "/approvals/")
    expect(root).to_have_attribute("data-theme", "dark")
    assert _background(page) == dark != light

    with page.expect_response("**/settings/theme/"):
        page.get_by_role("button", name="Like my system").click()
    expect(root).to_have_attribute("data-theme", "auto")
    assert _background(page) == light


def _background(page: Page) -> str:
    found = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return str(found)


def test_everything_works_on_a_phone(sign_in: Callable[..., Person]) -> None:
    person = sign_in(**PHONE)
    person.window.allow("404")
    page = person.open()
    rail = page.get_by_role("navigation", name="Main")
    expect(rail).to_be_hidden()
    page.get_by_role("button", name="Menu").tap()
    expect(rail).to_be_visible()
    rail.get_by_role("link", name="New agent", exact=True).tap()
    page.wait_for_url("**/sessions/new/")

    long_name = "a-very-long-name-that-does-not-break" * 4
    session = person.start_agent(f"run echo {long_name} > pocket.txt")
    expect(session.pending).to_be_visible()
    _fits(session.page)
    session.button("Approve").tap()
    session.ends_as("Completed")
    assert (session.folder / "pocket.txt").read_text() == f"{long_name}\n"
    _fits(session.page)
    for path in PAGES:
        page.goto(person.address + path)
        _fits(page)


def _fits(page: Page) -> None:
    """Nothing scrolls sideways, but what has a scroll area of its own."""
    widths = page.evaluate(
        "[document.scrollingElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert widths[0] <= widths[1], page.url


def test_a_field_that_a_script_made_grow_breaks_no_policy(olivia: Person) -> None:
    """As in browsers without `field-sizing`: htmx must not copy the style over."""
    olivia.window.allow("422")
    page = olivia.open("/sessions/new/")
    task = page.get_by_label("Task", exact=True)
    task.fill(" ")
    task.evaluate("field => { field.style.height = '120px' }")

    page.get_by_role("button", name="Start agent").click()

    expect(page.locator(".errorlist")).to_be_visible()
