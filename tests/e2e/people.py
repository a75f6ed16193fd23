"""A person at a browser: what the tests do on pages, and what they look for there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    expect,
)

from agents.demo.server import DemoServer
from agents.demo.state import RecordedRequest
from tests.server import Server, manage, until

T = TypeVar("T")

expect.set_options(timeout=30_000)


# Says on the page itself that the socket's first frame, the snapshot, is in it.
_MARK_FRAMES = """
document.addEventListener("htmx:wsAfterMessage", () => {
  document.documentElement.dataset.frames = "some";
});
"""


class Window:
    """A browser; collects what must not happen on any page of it: errors, dialogs.

    A violation of the content security policy is an error on the console.
    """

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.complaints: list[str] = []
        self._allowed: list[re.Pattern[str]] = []
        context.set_default_timeout(30_000)
        context.add_init_script(_MARK_FRAMES)
        context.on("console", self._console)
        context.on("weberror", lambda e: self._complain(f"page error: {e.error}"))
        context.on("dialog", self._dialog)

    def allow(self, pattern: str) -> None:
        """For tests that provoke it: refused requests, lost sockets."""
        self._allowed.append(re.compile(pattern))

    def allow_lost_connections(self) -> None:
        self.allow(r"WebSocket connection|net::ERR_|\[object Event\]")
        self.allow("htmx:(sendError|afterRequest)")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._complain(f"{message.text} ({message.location.get('url')})")

    def _dialog(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _complain(self, text: str) -> None:
        if not any(pattern.search(text) for pattern in self._allowed):
            self.complaints.append(text)


class Person:
    """Somebody at one browser, who may have several tabs."""

    def __init__(
        self, window: Window, server: Server, demo: DemoServer, address: str = ""
    ) -> None:
        self.window = window
        self.server = server
        self.demo = demo
        self.address = address or server.address

    def remember(self, cookies: dict[str, str]) -> None:
        """Be signed in."""
        self.window.context.add_cookies(
            [
                {"name": name, "value": value, "url": self.address}
                for name, value in cookies.items()
            ]
        )

    def open(self, path: str = "/") -> Page:
        page = self.window.context.new_page()
        page.goto(self.address + path)
        return page

    def start_agent(self, task: str, **options: str) -> Session:
        """Fill in "New agent" in a new tab; options are fields by their label."""
        page = self.open("/sessions/new/")
        page.get_by_label("Task", exact=True).fill(task)
        if options:
            page.locator("summary", has_text="Options").click()
        for label, value in options.items():
            page.get_by_label(label.replace("_", " ").capitalize()).select_option(value)
        page.get_by_role("button", name="Start agent").click()
        page.wait_for_url("**/sessions/*-*/")
        return Session(self, page)

    def enter(self, session: Session) -> Session:
        """The same session in another tab."""
        return Session(self, self.open(f"/sessions/{session.id}/"))


class Session:
    """The page of one session, and what the server has stored about it."""

    def __init__(self, person: Person, page: Page) -> None:
        self.person = person
        self.page = page
        self.server = person.server
        self.demo = person.demo
        self.id = UUID(page.url.rstrip("/").rpartition("/")[2])

    @property
    def path(self) -> str:
        return f"/sessions/{self.id}/"

    # what the page shows

    @property
    def transcript(self) -> Locator:
        return self.page.get_by_role("log", name="Transcript")

    @property
    def replies(self) -> Locator:
        return self.transcript.locator("article[data-role='assistant']")

    @property
    def reply(self) -> Locator:
        """The words of the newest reply."""
        return self.replies.last.locator(".message__body")

    @property
    def status(self) -> Locator:
        return self.page.locator(f"#session-{self.id}-status")

    @property
    def cards(self) -> Locator:
        return self.page.locator(".approval-card")

    @property
    def pending(self) -> Locator:
        return self.page.locator(".approval-card[data-state='pending']")

    @property
    def notices(self) -> Locator:
        return self.transcript.locator(".notice")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def reload(self) -> None:
        """Open the page again and wait until its socket has sent the snapshot."""
        self.page.reload()
        expect(self.page.locator("html")).to_have_attribute("data-frames", "some")

    def send(self, text: str) -> None:
        self.page.get_by_label("Message", exact=True).fill(text)
        self.button("Send").click()

    def ends_as(self, status: str, *, turns: int = 1) -> None:
        """Wait until the last turn has ended, in the page and in the database."""
        expect(self.status).to_have_text(re.compile(status))
        expect(self.page.locator(".turn-end")).to_be_visible()
        until(lambda: self.rows("state = 'finished'", "run") >= turns, "the turn's end")

    def until(self, condition: Callable[[], T | None], what: str) -> T:
        """Wait for something that the browser tells Playwright."""

        def look() -> T | None:
            self.page.evaluate("0")  # lets Playwright hear what has come in
            return condition()

        return until(look, what)

    # what is stored

    def rows(self, where: str, table: str) -> int:
        found = self.server.rows(
            f"SELECT count(*) FROM agents_{table} WHERE session_id = ? AND {where}",  # noqa: S608  the tests' own words
            self.id.hex,
        )
        return int(found[0][0])

    @property
    def stored_status(self) -> str:
        query = "SELECT status FROM agents_agentsession WHERE id = ?"
        return str(self.server.rows(query, self.id.hex)[0][0])

    @property
    def folder(self) -> Path:
        query = "SELECT cwd FROM agents_agentsession WHERE id = ?"
        return Path(self.server.rows(query, self.id.hex)[0][0])

    @property
    def stored_reply(self) -> str:
        """The newest reply's text as the database has it."""
        return self.texts("assistant")[-1]

    def texts(self, role: str) -> list[str]:
        query = (
            "SELECT text FROM agents_message"
            " WHERE session_id = ? AND role = ? ORDER BY seq"
        )
        return [text for (text,) in self.server.rows(query, self.id.hex, role)]

    # what the model was sent

    @property
    def calls(self) -> list[RecordedRequest]:
        """The model calls of this session's agent, side calls left out."""
        sdk_ids = {
            str(UUID(found))
            for (found,) in self.server.rows(
                "SELECT sdk_session_id FROM agents_messagebranch WHERE session_id = ?",
                self.id.hex,
            )
        }
        return [
            call
            for call in self.demo.state.model_calls
            if call.session_id in sdk_ids and call.tools
        ]

    @property
    def last_call(self) -> str:
        """All that the model was last told, as one text."""
        return json.dumps(self.calls[-1].messages, ensure_ascii=False)

    def tool_results(self) -> list[Any]:
        """The tool results that the last call carried."""
        return [
            block
            for message in self.calls[-1].messages
            if isinstance(message["content"], list)
            for block in message["content"]
            if block.get("type") == "tool_result"
        ]


def seed(session: Session, function: str, amount: int) -> None:
    """Write rows by a function of seed.py that no agent would be quick to write."""
    code = f"from tests.e2e import seed; seed.{function}('{session.id}', {amount})"
    done = manage(session.server.data_dir, "shell", "-v", "0", "-c", code)
    assert done.returncode == 0, done.stderr
