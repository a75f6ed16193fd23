"""Two tabs that act in the same moment: one run at a time, and both show the truth."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect

from tests.server import until

from .people import Person, Session

pytestmark = [pytest.mark.e2e, pytest.mark.cli]


def hold_back(session: Session) -> list[Route]:
    """Keep what this tab posts in the air until the test lets it go."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method == "POST":
            held.append(route)
        else:
            route.continue_()

    session.page.route(f"**/sessions/{session.id}/**", hold)
    return held


def test_two_tabs_edit_send_and_stop_at_once(olivia: Person) -> None:
    first = olivia.start_agent("demo: say Working.\ndemo: hold tabs")
    olivia.demo.state.wait_until_held("tabs")
    second = olivia.enter(first)
    held = hold_back(second)

    second.send("say from the second")
    second.button("Stop").click()
    second.until(lambda: len(held) == 2, "the second tab's message and its stop")
    first.button("Edit message").last.click()
    first.transcript.get_by_label("Message", exact=True).fill("say from the first")
    first.button("Send edited message").click()
    for route in held:
        route.continue_()
    olivia.demo.state.release("tabs")
    until(lambda: first.rows("text LIKE 'say from%'", "message") == 2, "both messages")
    until(lambda: not is_at_work(first), "the end of what runs")

    if first.rows("queued_at IS NOT NULL AND delivered_at IS NULL", "message"):
        second.page.unroute_all()
        second.button("Send them").click()
    until(lambda: first.rows("1 = 1", "run") == 3, "the run of each message")
    until(lambda: not is_at_work(first), "the last turn's end")

    assert first.rows("role = 'user'", "message") == 3
    stored = olivia.enter(first)
    words = stored.transcript.locator("article .message__body").all_inner_texts()
    assert "say from the first" in words
    for tab in (first, second):
        expect(tab.transcript.locator("article .message__body")).to_have_text(words)


def is_at_work(session: Session) -> bool:
    return bool(session.rows("state <> 'finished'", "run"))
