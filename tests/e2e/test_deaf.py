"""All doorbells are lost: pages and waiting agents find out by looking themselves."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from agents.demo.server import DemoServer
from tests.server import Server

from .conftest import cookies_of_owner
from .people import Person, Window

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

TASK = """
demo: hold unheard after 15 words
demo: tool Write {"file_path": "$CWD/quiet.txt", "content": "quiet"}
demo: hold unheard-stop after 10 words
"""


@pytest.fixture(scope="module")
def deaf_server(make_server: Callable[..., Server]) -> Server:
    return make_server(DJANGO_SETTINGS_MODULE="tests.e2e.deaf_settings")


def test_pages_and_agents_converge_without_any_doorbell(
    deaf_server: Server, open_window: Callable[..., Window], demo: DemoServer
) -> None:
    person = Person(open_window(), deaf_server, demo)
    person.remember(cookies_of_owner(deaf_server))
    inbox = person.open("/approvals/")
    session = person.start_agent(TASK)

    expect(session.reply).to_have_text(re.compile(r"^amber-1 .*-15\s*$"))
    demo.state.release("unheard")
    expect(session.pending).to_contain_text("quiet.txt")
    expect(inbox.locator(".approval-card")).to_contain_text("quiet.txt")
    assert session.stored_status == "waiting_approval"

    inbox.get_by_role("button", name="Approve", exact=True).click()
    expect(session.cards).to_contain_text("approved by olivia")
    expect(session.reply).to_have_text(re.compile(r"^amber-1 .*-10\s*$"))
    assert (session.folder / "quiet.txt").read_text() == "quiet"
    expect(session.status).to_have_text("Running")

    session.button("Stop").click()
    session.ends_as("Stopped")
    expect(inbox.get_by_text("Nothing waits for you")).to_be_visible()
