"""A real `manage.py serve` in a process of its own, and a person at its pages.

The server gets a data folder of its own. What it stored is read from its database,
so that tests wait for states, never for a time.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import UUID

import httpx2

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 180  # on a machine that does other things as well
PASSWORD = "correct horse battery"


def until(condition: Callable[[], T | None], what: str) -> T:
    """Wait for a state; the deadline only ends a test that has failed."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {PATIENCE_SECONDS} s for {what}")
        time.sleep(0.05)
    return found


def clean_environment(data_dir: Path, **more: str) -> dict[str, str]:
    """The test run's environment without any setting of the developer's own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENSWARM_", "DJANGO_"))
    }
    return {
        **kept,
        "OPENSWARM_DATA_DIR": str(data_dir),
        "PYTHONWARNINGS": "error",
        "PYTHONUNBUFFERED": "1",
        **more,
    }


def manage(data_dir: Path, *arguments: str, **environment: str) -> Any:
    """Run a command of manage.py to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=clean_environment(data_dir, **environment),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


class Server:
    """`manage.py serve` on a free port; `start` returns when it says its address."""

    def __init__(self, data_dir: Path, *arguments: str, **environment: str) -> None:
        self.data_dir = data_dir
        self.address = ""
        self._arguments = arguments or ("--port", "0")
        self._environment = clean_environment(data_dir, **environment)
        self._log = data_dir.with_name(f"{data_dir.name}.log")
        self._process: subprocess.Popen[bytes] | None = None
        self._visitors: list[Visitor] = []

    def start(self) -> Self:
        self.address = ""
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "manage.py", "serve", *self._arguments],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self.address = until(self._said_address, "the server's address")
        except AssertionError:
            self.kill()
            raise
        return self

    def _said_address(self) -> str | None:
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended: {self.output}")
        said = re.search(r"OpenSwarm is at (\S+)/", self.output)
        return said[1] if said else None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "start comes first"
        return self._process

    @property
    def output(self) -> str:
        return self._log.read_text()

    @property
    def setup_path(self) -> str:
        """Where the first person makes the owner's account."""
        found = until(lambda: re.search(r"/setup/\S+/", self.output), "the setup link")
        return found[0]

    def at_last_address(self) -> Self:
        """After a reload it may listen on another port."""
        self.address = re.findall(r"OpenSwarm is at (\S+)/", self.output)[-1]
        return self

    def visitor(self, **headers: str) -> Visitor:
        """Another browser at the server's present address."""
        visitor = Visitor(self, **headers)
        self._visitors.append(visitor)
        return visitor

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """What the server has committed; empty while there is no such table yet."""
        path = self.data_dir / "openswarm.sqlite3"
        with closing(sqlite3.connect(path, timeout=20)) as connection:
            return connection.execute(sql, values).fetchall()

    def until_rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return until(lambda: self.rows(sql, *values), sql)

    def __enter__(self) -> Self:
        return self.start()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def __exit__(self, *_: object) -> None:
        for visitor in self._visitors:
            visitor.client.close()
        self.kill()


class Visitor:
    """A browser without JavaScript: cookies, CSRF, forms."""

    def __init__(self, server: Server, **headers: str) -> None:
        self.server = server
        self.client = httpx2.Client(
            base_url=server.address,
            headers=headers,
            follow_redirects=True,
            timeout=PATIENCE_SECONDS,
        )

    def get(self, path: str) -> httpx2.Response:
        return self.client.get(path)

    def post(self, path: str, **fields: str) -> httpx2.Response:
        token = self.client.cookies.get("csrftoken", "")
        data = {"csrfmiddlewaretoken": token, **fields}
        return self.client.post(path, data=data)

    def set_up(self) -> Self:
        """Make the owner's account through the link in the terminal."""
        path = self.server.setup_path
        assert self.get(path).status_code == 200
        fields = {"password": PASSWORD, "repeated": PASSWORD}
        answer = self.post(path, username="olivia", **fields)
        assert answer.url.path == "/sessions/new/", answer.text
        return self

    def sign_in(self) -> Self:
        self.get("/login/")
        answer = self.post("/login/", username="olivia", password=PASSWORD)
        assert answer.url.path == "/", answer.text
        return self

    def start_agent(self, task: str) -> UUID:
        """Fill in "New agent" as it stands, and return the session's id."""
        form = self.get("/sessions/new/").text
        answer = self.post("/sessions/new/", task=task, **_chosen(form))
        found = re.fullmatch(r"/sessions/([0-9a-f-]{36})/", answer.url.path)
        assert found, answer.text
        return UUID(found[1])


def _chosen(form: str) -> dict[str, str]:
    """What the selects of a page stand on."""
    chosen = {}
    for name, options in re.findall(
        r'<select name="(\w+)".*?>(.*?)</select>', form, re.S
    ):
        selected = re.search(r'<option value="([^"]*)"[^>]*selected', options)
        first = re.search(r'<option value="([^"]*)"', options)
        value = selected or first
        chosen[name] = value[1] if value else ""
    return chosen


@contextmanager
def taken_port() -> Iterator[int]:
    """A port of this machine on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]
