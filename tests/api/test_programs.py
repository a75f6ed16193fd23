"""A program with nothing but HTTP starts an agent, follows it, is cut off, and decides.

What it put together from eleven connections is what the database holds.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agents.demo.server import DemoServer
from tests.server import PATIENCE_SECONDS, Server

pytestmark = pytest.mark.cli

CUTS = 10
MAX_BYTES = 2000
SCRIPT = """\
demo: think I will look first.
demo: hold live after 6 words
demo: tool Write {"file_path": "$CWD/a.txt", "content": "one"}
demo: stream 30 words
demo: tool Bash {"command": "cat a.txt"}
demo: say Now the rest.
demo: tool Write {"file_path": "$CWD/b.txt", "content": "two"}
demo: say All is done."""


@pytest.fixture
def demo() -> Iterator[DemoServer]:
    with DemoServer() as demo:
        yield demo


@pytest.fixture
def server(demo: DemoServer, tmp_path: Path) -> Iterator[Server]:
    with Server(
        tmp_path / "data",
        OPENSWARM_DEMO_URL=demo.url,
        OPENSWARM_GENERATE_TITLES="off",
    ) as server:
        yield server


@pytest.fixture
def api(server: Server) -> Iterator[httpx2.Client]:
    """A client with a token that was made on the page."""
    visitor = server.visitor().set_up()
    page = visitor.get("/settings/tokens/")
    assert "You have no token yet." in page.text
    page = visitor.client.post(
        "/settings/tokens/",
        data={
            "csrfmiddlewaretoken": visitor.client.cookies["csrftoken"],
            "name": "My script",
            "scopes": ["read", "write", "decide"],
            "days": "7",
        },
    )
    found = re.search(r'id="new-token">(osw_[\w-]+)<', page.text)
    assert found, page.text
    with httpx2.Client(
        base_url=f"{server.address}/api",
        headers={"Authorization": f"Bearer {found[1]}"},
        timeout=PATIENCE_SECONDS,
    ) as client:
        yield client


@dataclass
class Follower:
    """Keeps what it was sent, over as many connections as it takes."""

    api: httpx2.Client
    demo: DemoServer
    session_id: str
    durable: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)
    is_over: bool = False

    def read(self, until_bytes: int | None = None) -> None:
        """Listen until the connection is cut there, or to the end of the turn."""
        headers = {"Last-Event-ID": str(self.durable[-1][0])} if self.durable else {}
        path = f"/sessions/{self.session_id}/events/"
        with self.api.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            with closing(_frames(response, until_bytes)) as sent:
                for frame in sent:
                    self._take(frame)
                    if self.is_over:
                        break

    def _take(self, frame: dict[str, str]) -> None:
        event = json.loads(frame["data"])
        assert event["type"] == frame["event"]
        data = event["data"]
        if "id" in frame:
            assert event["seq"] == int(frame["id"])
            self.durable.append((event["seq"], event["type"], data))
        if event["type"] == "agent:stream_delta":
            assert "id" not in frame
            known = self.texts.get(data["message_id"], "")
            assert data["offset"] <= len(known), "nothing is missing in between"
            grown = known[: data["offset"]] + data["text"]
            self.texts[data["message_id"]] = grown
            if re.search(r"-6\s*$", grown):
                self.demo.state.release("live")
        elif event["type"] == "agent:stream_end":
            self.whole[data["message_id"]] = event["message"]["text"]
        elif event["type"] == "agent:approval_request":
            self._decide(event["approval"])
        elif event["type"] == "agent:complete":
            self.is_over = True

    def _decide(self, approval: dict[str, Any]) -> None:
        """All are approved, the second file with other words; again after a cut."""
        body: dict[str, Any] = {"decision": "approve"}
        if approval["tool_input"].get("content") == "two":
            body["updated_input"] = {**approval["tool_input"], "content": "three"}
        answer = self.api.post(f"/approvals/{approval['id']}/decide/", json=body)
        assert answer.status_code == 200, answer.text


def _frames(
    response: httpx2.Response, until_bytes: int | None
) -> Generator[dict[str, str]]:
    """All frames that came whole before the cut; half of one is worth nothing."""
    left = until_bytes
    buffer = b""
    for chunk in response.iter_raw():
        buffer += chunk[:left]
        *whole, buffer = buffer.split(b"\n\n")
        for frame in whole:
            lines = frame.decode().split("\n")
            parts = (line.partition(": ") for line in lines)
            fields = {name: value for name, _, value in parts}
            if "data" in fields:
                yield fields
        if left is not None:
            left -= len(chunk)
            if left <= 0:
                return


def test_a_program_follows_an_agent_through_ten_cuts(
    api: httpx2.Client, server: Server, demo: DemoServer
) -> None:
    seed = random.randrange(10**6)  # noqa: S311  no secret
    print(f"cuts by the seed {seed}")  # noqa: T201  to run it again
    points = random.Random(seed)  # noqa: S311  no secret
    started = api.post("/sessions/", json={"task": SCRIPT, "max_steps": 20})
    assert started.status_code == 201, started.text
    session_id = started.json()["id"]
    follower = Follower(api, demo, session_id)

    for _ in range(CUTS):
        follower.read(points.randint(1, MAX_BYTES))
        assert not follower.is_over, "each cut comes before the end"
    follower.read()

    stored = server.rows(
        "SELECT seq, type, data FROM agents_sessionevent"
        " WHERE session_id = ? ORDER BY seq",
        session_id.replace("-", ""),
    )
    rows = [(seq, wire, json.loads(data)) for seq, wire, data in stored]
    taken = follower.durable
    assert taken == rows[: len(taken)]
    assert [seq for seq, _, _ in taken] == list(range(1, len(taken) + 1))
    assert taken[-1][1] == "agent:complete"

    page = api.get(f"/sessions/{session_id}/messages/", params={"limit": 200}).json()
    texts = {each["id"]: each["text"] for each in page["items"]}
    assert follower.whole == {name: texts[name] for name in follower.whole}
    assert all(
        texts[name].startswith(text) or not texts[name]  # a call's input, once whole
        for name, text in follower.texts.items()
    )
    replies = [each["text"] for each in page["items"] if each["role"] == "assistant"]
    assert replies[0].split()[-1].endswith("-12")
    assert replies[-1] == "All is done."
    session = api.get(f"/sessions/{session_id}/").json()
    assert session["status"] == "completed"
    [folder] = (server.data_dir / "workspaces").glob("*/*")
    assert (folder / "b.txt").read_text() == "three"
