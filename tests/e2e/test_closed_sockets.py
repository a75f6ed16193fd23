"""Sockets that the server closes for good, and those that won't stay open."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.server import Server

from .people import Person, Session
from .relay import Relay

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

_CLOSE_CODE = """path => new Promise(tell => {
  const socket = new WebSocket(location.origin.replace(/^http/, "ws") + path);
  socket.onclose = closed => tell(closed.code);
})"""

# Every wait is the longest it may be, and is noted.
_NOTE_WAITS = """
Math.random = () => 1;
window.waits = [];
const wait = window.setTimeout;
window.setTimeout = (act, ms, ...more) => {
  window.waits.push(ms);
  return wait(act, ms, ...more);
};
"""


def close_code(page: Page, path: str) -> int:
    return int(page.evaluate(_CLOSE_CODE, path))


def test_a_browser_learns_why_its_socket_is_closed(olivia: Person) -> None:
    page = olivia.open("/sessions/new/")

    assert close_code(page, f"/ws/session/{uuid4()}/") == 4404
    assert close_code(page, "/ws/elsewhere/") == 4404

    olivia.window.context.clear_cookies()
    assert close_code(page, "/ws/home/") == 4401
    assert close_code(page, f"/ws/session/{uuid4()}/") == 4401


def test_the_page_of_one_who_has_signed_out_stays_away(
    sign_in: Callable[..., Person], server: Server
) -> None:
    with Relay(server) as relay:
        person = sign_in(relay)
        person.window.allow_lost_connections()
        page = person.open("/sessions/new/")
        banner = page.locator("#connection")
        expect(page.locator("html")).to_have_attribute("data-frames", "some")

        person.window.context.clear_cookies()
        relay.cut()

        expect(banner).to_have_attribute("data-state", "offline")
        _look_away_and_back(page)
        expect(banner).to_have_attribute("data-state", "offline")


def test_the_page_of_a_deleted_session_asks_no_more(olivia: Person) -> None:
    session = olivia.start_agent("say: hello")
    session.ends_as("Completed")
    other = olivia.enter(session)
    opened: list[str] = []
    expect(other.status).to_have_text("Completed")
    expect(other.page.locator("html")).to_have_attribute("data-frames", "some")
    other.page.on("websocket", lambda socket: opened.append(socket.url))

    _delete(session)

    expect(other.page.locator("#main")).to_contain_text("This session was deleted")
    _look_away_and_back(other.page)
    assert close_code(other.page, f"/ws/session/{session.id}/") == 4404
    assert len(opened) == 1, "the one that this test opened"


def test_a_socket_that_is_closed_as_soon_as_it_opens_is_tried_ever_less(
    olivia: Person,
) -> None:
    page = olivia.window.context.new_page()
    page.add_init_script(_NOTE_WAITS)

    def close_at_once(socket: WebSocketRoute) -> None:
        socket.send("")  # opens it
        socket.close(code=1011)

    page.route_web_socket("**/ws/**", close_at_once)

    page.goto(olivia.address + "/sessions/new/")

    expect(page.locator("#connection")).to_have_attribute("data-state", "reconnecting")
    waits = page.wait_for_function(
        "() => window.waits.includes(4000) && window.waits"
    ).json_value()
    assert [ms for ms in waits if ms in {1000, 2000, 4000}] == [1000, 2000, 4000]


def _look_away_and_back(page: Page) -> None:
    """What a page does when it is looked at again."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def _delete(session: Session) -> None:
    session.page.get_by_label("Session menu").click()
    session.page.get_by_role("link", name="Delete session…").click()
    session.button("Delete session").click()
    expect(session.page.locator("#toasts")).to_contain_text("is deleted.")
