"""Finding again what was said, taking it away as a file, and bringing it back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .people import Person

pytestmark = [pytest.mark.e2e, pytest.mark.cli]


def test_a_word_leads_to_the_message_that_holds_it(olivia: Person) -> None:
    session = olivia.start_agent("say the Cassowary is <b>tall</b>")
    session.ends_as("Completed")
    page = session.page

    page.get_by_role("navigation", name="Main").get_by_role(
        "link", name="History"
    ).click()
    search = page.get_by_label("Search", exact=True)
    search.press_sequentially("CASSOWARY is <b>")
    hits = page.locator(".history-hit")

    expect(hits).to_have_count(2)
    expect(hits.first.locator("mark")).to_have_text("Cassowary is <b>")
    expect(page).to_have_url(re.compile(r"/history/\?.*q=CASSOWARY"))

    hits.first.focus()
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"/sessions/.*#message-"))
    target = page.url.partition("#")[2]
    expect(page.locator(f"#{target}")).to_be_in_viewport()


def test_nothing_found_says_so_and_the_way_back_works(olivia: Person) -> None:
    olivia.start_agent("say ready").ends_as("Completed")
    page = olivia.open("/history/")

    page.get_by_label("Search", exact=True).fill("no such words anywhere")

    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    page.get_by_role("link", name="Show everything").click()
    expect(page.locator(".history-entry").first).to_be_visible()


def test_an_exported_session_comes_back_by_import(
    olivia: Person, tmp_path: Path
) -> None:
    session = olivia.start_agent("say a portable answer")
    session.ends_as("Completed")
    page = session.page

    page.get_by_label("Session menu").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as JSON").click()
    download.value.save_as(tmp_path / "session.json")

    page.goto(f"{olivia.address}/history/")
    page.get_by_text("Import a session").click()
    page.get_by_label("Exported session").set_input_files(tmp_path / "session.json")
    page.get_by_role("button", name="Import session").click()

    transcript = page.get_by_role("log", name="Transcript")
    expect(transcript).to_contain_text("a portable answer")
    expect(transcript).to_contain_text("The agent remembers nothing of it")
