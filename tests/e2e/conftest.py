"""One Chromium, one server and one demo model for all end-to-end tests.

Every test has browser contexts of its own; whatever its pages report as broken fails
it. Package scope, because Playwright keeps an event loop in the main thread.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from agents.demo.server import DemoServer
from tests.server import Server

from .people import Person, Window
from .relay import Relay

CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Pages and waiters that poll often, and few warm clients: they cost memory.
QUICK = {
    "OPENSWARM_WATCH_POLL_SECONDS": "0.5",
    "OPENSWARM_APPROVAL_POLL_SECONDS": "0.5",
    "OPENSWARM_HEARTBEAT_SECONDS": "1",
    "OPENSWARM_WARM_CLIENTS": "2",
    "OPENSWARM_GENERATE_TITLES": "off",  # tests count what the demo model is asked
}


def _chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    reason = "there is no Chromium on this machine"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = _chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=list(CHROMIUM_FLAGS)
        )
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def demo() -> Iterator[DemoServer]:
    """The model of every server here: its gates and records belong to the tests."""
    with DemoServer() as demo:
        yield demo


@pytest.fixture(scope="package")
def make_server(
    demo: DemoServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Server]]:
    """Start another server with data of its own."""
    started: list[Server] = []

    def make_server(*arguments: str, **environment: str) -> Server:
        server = Server(
            tmp_path_factory.mktemp("e2e"),
            *arguments,
            OPENSWARM_DEMO_URL=demo.url,
            **{**QUICK, **environment},
        )
        started.append(server)
        return server.start()

    yield make_server
    for server in started:
        server.__exit__()


@pytest.fixture(scope="package")
def server(browser: Browser, make_server: Callable[..., Server]) -> Server:
    """The server that most tests share; olivia owns it."""
    return make_server()


@pytest.fixture(scope="package")
def owner_cookies(server: Server) -> dict[str, str]:
    return cookies_of_owner(server)


def cookies_of_owner(server: Server) -> dict[str, str]:
    """Make the owner's account without a browser, and stay signed in."""
    jar = server.visitor().set_up().client.cookies.jar
    return {cookie.name: cookie.value or "" for cookie in jar}


@pytest.fixture
def open_window(browser: Browser) -> Iterator[Callable[..., Window]]:
    """A browser of its own for somebody; a complaint of any page fails the test."""
    windows: list[Window] = []

    def open_window(**options: Any) -> Window:
        windows.append(Window(browser.new_context(**options)))
        return windows[-1]

    yield open_window
    for window in windows:
        window.context.close()
    assert [line for window in windows for line in window.complaints] == []


@pytest.fixture
def sign_in(
    open_window: Callable[..., Window],
    server: Server,
    owner_cookies: dict[str, str],
    demo: DemoServer,
) -> Callable[..., Person]:
    """Olivia at another browser; through a relay, if one is given."""

    def sign_in(relay: Relay | None = None, **options: Any) -> Person:
        address = relay.address if relay else server.address
        person = Person(open_window(**options), server, demo, address)
        person.remember(owner_cookies)
        return person

    return sign_in


@pytest.fixture
def olivia(sign_in: Callable[..., Person]) -> Person:
    return sign_in()
