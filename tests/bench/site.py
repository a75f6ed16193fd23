"""The product under measurement: a real `manage.py serve`, and its owner's browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from uuid import UUID

from tests.dom import Node, parse
from tests.server import Server, Visitor

from .viewer import Viewer, watching

MANY = "64"
LIMITS = {
    "OPENSWARM_MAX_RUNS_PER_PROCESS": MANY,
    "OPENSWARM_MAX_RUNS_PER_USER": MANY,
    "OPENSWARM_WARM_CLIENTS": MANY,
}


class Owner(Visitor):
    """Everything happens over HTTP, as in a browser."""

    @property
    def cookie(self) -> str:
        return "; ".join(
            f"{name}={value}" for name, value in self.client.cookies.items()
        )

    def use_provider(self, url: str) -> None:
        """Have all agents talk to a demo model that runs in another process."""
        self.get("/settings/providers/new/")
        answer = self.post(
            "/settings/providers/new/",
            name="Bench",
            kind="gateway",
            base_url=url,
            api_key="bench",
            is_enabled="on",
            is_shared="on",
        )
        if answer.url.path != "/settings/providers/":
            raise RuntimeError(f"the provider was refused: {answer.text}")

    def open_form(self) -> None:
        """Read "New agent", whose selects `press_start` sends as they stand."""
        form = parse(self.get("/sessions/new/").text)
        self._choices = {
            select.attributes["name"]: _chosen(select)
            for select in form.find_all("select")
        }

    def press_start(self, task: str) -> UUID:
        """Send "New agent" and follow to the session's page."""
        answer = self.post("/sessions/new/", task=task, **self._choices)
        answer.raise_for_status()
        return UUID(answer.url.path.split("/")[2])

    def send(self, session_id: UUID, text: str) -> None:
        self._press(f"/sessions/{session_id}/messages/", text=text)

    def stop(self, session_id: UUID) -> None:
        self._press(f"/sessions/{session_id}/stop/")

    def _press(self, path: str, **data: str) -> None:
        """As the page does it: by htmx, which gets a fragment and not the page."""
        answer = self.client.post(
            path,
            data=data,
            headers={
                "HX-Request": "true",
                "X-CSRFToken": self.client.cookies.get("csrftoken") or "",
            },
        )
        answer.raise_for_status()


def _chosen(select: Node) -> str:
    options = select.find_all("option")
    selected = [option for option in options if "selected" in option.attributes]
    return next((each.attributes["value"] for each in [*selected, *options]), "")


class Site:
    """A running server, signed in to. Requests run in threads, viewers in the loop."""

    def __init__(self, server: Server, owner: Owner) -> None:
        self.server = server
        self.owner = owner

    @property
    def pid(self) -> int:
        return self.server.process.pid

    async def start_agent(self, task: str) -> UUID:
        return await asyncio.to_thread(self.owner.press_start, task)

    async def send(self, session_id: UUID, text: str) -> None:
        await asyncio.to_thread(self.owner.send, session_id, text)

    async def stop(self, session_id: UUID) -> None:
        await asyncio.to_thread(self.owner.stop, session_id)

    @asynccontextmanager
    async def page(self, session_id: UUID) -> AsyncIterator[Viewer]:
        async with watching(
            self.server.address, f"/ws/session/{session_id}/", self.owner.cookie
        ) as viewer:
            yield viewer

    async def until_idle(self) -> None:
        """Wait until every run is finished, so that the next prompt isn't queued."""
        await asyncio.to_thread(
            self.server.until_rows,
            "select 1 where not exists"
            " (select 1 from agents_run where state != 'finished')",
        )


@contextmanager
def running_site(data_dir: Path, demo_url: str) -> Iterator[Site]:
    with Server(data_dir, **LIMITS) as server:
        owner = Owner(server)
        owner.set_up()
        owner.use_provider(demo_url)
        owner.open_form()
        try:
            yield Site(server, owner)
        finally:
            server.end()
