"""The gateway of a process: its two sockets, its lines, its start and its end.

A jailed CLI has no network and comes through the Unix socket; one without a jail
through an ephemeral port on loopback. One uvicorn server listens on both.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import uvicorn

from agents.errors import AgentsError
from agents.tasks import spawn

from .app import GatewayApp
from .backoff import Backoff
from .exchange import Services
from .ledger import Books
from .lines import Line, Lines, Trouble, Upstream
from .network import Clients
from .upstreams import resolve_upstream

__all__ = ["Gateway", "Line", "Trouble", "Upstream", "resolve_upstream"]

MAX_SOCKET_PATH_BYTES = 107  # of sockaddr_un, without the closing NUL
STOP_SECONDS = 5.0
# Longer than a turn's pauses: a connection closed just as it is used again is an error.
KEEP_ALIVE_SECONDS = 300


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the process belongs to somebody else."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_listening.set()


class Gateway:
    """One per process. Lines are opened in the loop that `start` ran in."""

    def __init__(self, *, folder: Path) -> None:
        self.socket_path = folder / f"{os.getpid()}.sock"
        self.base_url = ""
        """The loopback address for CLIs without a jail; known after `start`."""
        self.demo_url = ""
        """Where the demo model is served; to be set before its first call."""
        self._lines = Lines()
        self._services: Services | None = None
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen on both sockets; calls are served when this returns.

        Raises: AgentsError: the path of the socket is too long.
        """
        listeners = [_bind_unix(self.socket_path), _bind_loopback()]
        self.base_url = f"http://127.0.0.1:{listeners[1].getsockname()[1]}"
        self._services = Services(Clients(), Backoff(), Books())
        app = GatewayApp(self._lines, self._services, self._base_url_of)
        self._server = _Server(_config(app))
        self._task = spawn(self._server.serve(sockets=listeners), name="gateway")
        await self._server.is_listening.wait()

    async def stop(self) -> None:
        """End all lines and calls, write the books, close; bounded, repeatable."""
        if self._server is None or self._task is None or self._services is None:
            return
        self._lines.close_all()
        self._server.should_exit = True
        await asyncio.wait({self._task}, timeout=STOP_SECONDS)
        self._task.cancel()
        await self._services.books.stop()
        await self._services.clients.aclose()
        self.socket_path.unlink(missing_ok=True)
        self._server = self._task = self._services = None

    def open_line(
        self,
        session_id: UUID,
        upstream: Upstream,
        on_trouble: Callable[[Trouble], None] | None = None,
        *,
        is_side: bool = False,
    ) -> Line:
        """Give a CLI process the right to call `upstream`, until `close_line`.

        Calls of a side line cost the session, but none of its turns.
        `on_trouble` is called in the loop, between two events; it must not block.
        """
        return self._lines.open(Line(session_id, upstream, on_trouble, is_side))

    def close_line(self, line: Line) -> None:
        """End the token and cancel the line's calls; a second call does nothing."""
        self._lines.close(line)

    async def settle(self) -> None:
        """Wait until the cost of all calls answered so far stands in the ledger."""
        if self._services is not None:
            await self._services.books.settle()

    def _base_url_of(self, line: Line) -> str:
        return self.demo_url if line.upstream.is_demo else line.upstream.base_url


def _config(app: GatewayApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,
    )


def _bind_unix(path: Path) -> socket.socket:
    """A socket that only this user may open, in a folder that only they may enter."""
    if len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
        raise AgentsError(
            "The data folder's path is too long for the gateway's socket. Choose a "
            "shorter OPENSWARM_DATA_DIR."
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    _remove_leftovers(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o600)
    return listener


def _remove_leftovers(path: Path) -> None:
    """Remove the sockets of processes that were killed, and one of our own number."""
    for leftover in path.parent.glob("*.sock"):
        if leftover == path or not _is_alive(leftover.stem):
            leftover.unlink(missing_ok=True)


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except PermissionError:  # somebody else's process is a process
        return True
    return True


def _bind_loopback() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))
