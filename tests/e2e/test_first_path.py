"""The first path of a new installation, from the setup link to the written file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from agents.demo.server import DemoServer
from agents.execution.processes import find_marked
from tests.server import PASSWORD, Server

from .people import Person, Session, Window

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

TASK = """
demo: hold first-words after 20 words
demo: tool Write {"file_path": "$CWD/hello.txt", "content": "Hello from the agent\\n"}
"""


@pytest.fixture
def new_server(make_server: Callable[..., Server]) -> Server:
    """Nobody has an account here."""
    return make_server()


@pytest.fixture
def ada(
    new_server: Server, open_window: Callable[..., Window], demo: DemoServer
) -> Person:
    return Person(open_window(), new_server, demo)


def test_it_leads_from_the_setup_link_to_a_file_that_the_agent_wrote(
    ada: Person, demo: DemoServer
) -> None:
    page = _make_account(ada)
    session = _start_agent(ada, page)
    _see_words_while_the_model_still_sends(session)
    _see_the_real_cli_at_work(session)
    demo.state.release("first-words")
    _approve_the_file(session)


def _make_account(ada: Person) -> Page:
    page = ada.open(ada.server.setup_path)
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name="New agent")).to_be_visible()
    return page


def _start_agent(ada: Person, page: Page) -> Session:
    page.goto(ada.address)
    page.get_by_role("link", name="New agent", exact=True).click()
    page.get_by_label("Task", exact=True).fill(TASK)
    page.get_by_role("button", name="Start agent").click()
    page.wait_for_url("**/sessions/*-*/")
    return Session(ada, page)


def _see_words_while_the_model_still_sends(session: Session) -> None:
    demo = session.demo.state
    demo.wait_until_held("first-words")

    expect(session.reply).to_have_text(re.compile(r"^amber-1 birch-2 .*\b\w+-20\s*$"))
    assert [call.outcome for call in session.calls] == ["pending"]
    expect(session.status).to_have_text("Running")
    expect(session.button("Stop")).to_be_visible()


def _see_the_real_cli_at_work(session: Session) -> None:
    programs = {_program(pid) for pid in find_marked(session.id)}
    bundled = [path for path in programs if path.parent.name == "_bundled"]

    assert [path.name for path in bundled] == ["claude"]
    assert "claude_agent_sdk" in bundled[0].parts


def _program(pid: int) -> Path:
    return Path(f"/proc/{pid}/exe").readlink()


def _approve_the_file(session: Session) -> None:
    file = session.folder / "hello.txt"
    expect(session.reply).to_have_text(re.compile(r"-20 \S+-21 .*\w+-40\s*$"))
    expect(session.pending).to_contain_text("hello.txt")
    expect(session.pending).to_contain_text("Hello from the agent")
    expect(session.status).to_have_text("Needs you")
    assert not file.exists()

    session.button("Approve").click()

    session.ends_as("Completed")
    assert file.read_text() == "Hello from the agent\n"
    card = session.transcript.locator(".tool-card", has_text="hello.txt")
    expect(card).to_contain_text("Done")
    expect(session.cards).to_contain_text("approved by ada")
    expect(session.pending).to_have_count(0)
    expect(session.page.locator(".session-header__facts")).to_contain_text("$")
