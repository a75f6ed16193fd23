"""A second person joins by a link and sees nothing of the first one's work."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from agents.demo.server import DemoServer
from tests.server import PASSWORD

from .people import Person, Window

pytestmark = [pytest.mark.e2e, pytest.mark.cli]


def test_a_second_person_joins_by_link_and_works_apart(
    olivia: Person, open_window: Callable[..., Window], demo: DemoServer
) -> None:
    hers = olivia.start_agent("say this is olivias secret")
    hers.ends_as("Completed")
    link = _invite(olivia)

    bob = Person(open_window(), olivia.server, demo)
    page = bob.open(link.removeprefix(bob.address))
    expect(page.get_by_role("heading", name="Join OpenSwarm")).to_be_visible()
    page.get_by_label("Username").fill("bob")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name="New agent")).to_be_visible()

    his = bob.start_agent("write the file bob.txt with the text mine")
    his.button("Approve").click()
    his.ends_as("Completed")
    assert (his.folder / "bob.txt").read_text().strip() == "mine"
    assert his.folder.parent != hers.folder.parent

    bob.window.allow("404")
    answer = page.goto(bob.address + hers.path)
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_text("olivias secret")).to_have_count(0)
    page.goto(bob.address)
    expect(
        page.get_by_role("link", name="write the file bob.txt").first
    ).to_be_visible()
    expect(page.get_by_text("olivias secret")).to_have_count(0)


def _invite(olivia: Person) -> str:
    page = olivia.open("/settings/people/")
    page.get_by_role("button", name="Create invite link").click()
    link = page.locator("#invite-link").inner_text()
    assert link.startswith(f"{olivia.address}/invite/")
    return link
