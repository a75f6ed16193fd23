"""Runs the demo model: inside a running loop, or in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import uvicorn

from agents.demo.app import DemoApp, create_app
from agents.demo.state import DemoState
from agents.tasks import spawn

logger = logging.getLogger(__name__)

START_SECONDS = 30.0
WATCHABLE_WORDS_PER_SECOND = 40.0


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the process belongs to somebody else."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class RunningDemo:
    """A demo model that serves in the current loop until `stop()`."""

    def __init__(self, app: DemoApp, server: _Server, listener: socket.socket) -> None:
        self._app = app
        self._server = server
        host, port = listener.getsockname()[:2]
        self.port = int(port)
        self.url = f"http://{host}:{port}"
        self._task = spawn(server.serve(sockets=[listener]), name="demo-server")

    @property
    def state(self) -> DemoState:
        return self._app.state

    async def stop(self) -> None:
        """Hang up on all callers and stop listening; a second call does nothing."""
        self._server.should_exit = True
        await self._app.close()
        await asyncio.wait({self._task})


async def serve_demo(
    host: str = "127.0.0.1", port: int = 0, state: DemoState | None = None
) -> RunningDemo:
    """Serve the demo model in this loop; port 0 picks a free one.

    The port accepts connections when this returns. Without a state of the caller's,
    nothing is recorded, and texts are paced for people to watch.
    Raises: OSError: the address is in use or can't be had.
    """
    if state is None:
        state = DemoState(max_recorded=0, words_per_second=WATCHABLE_WORDS_PER_SECOND)
    app = create_app(state)
    listener = socket.create_server((host, port))
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    return RunningDemo(app, _Server(config), listener)


class DemoServer:
    """The demo model in a thread, for synchronous code such as tests.

    `with DemoServer() as demo:` gives `demo.url` and `demo.state`. `refusing()` stops
    listening for a while, so that connections are refused.
    """

    def __init__(
        self,
        state: DemoState | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.state = state if state is not None else DemoState()
        self._host = host
        self._port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    def start(self) -> None:
        """Start serving and return when connections are accepted."""
        self._started.clear()
        self._failure = None
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="demo-model", daemon=True
        )
        self._thread.start()
        if not self._started.wait(START_SECONDS):
            raise TimeoutError("the demo model did not start")
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Hang up on all callers and end the thread; a second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        thread.join(START_SECONDS)

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse connections on the same port while the block runs."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            running = await serve_demo(self._host, self._port, self.state)
        except OSError as error:
            self._failure = error
            return
        else:
            self._port = running.port
        finally:
            self._started.set()
        await self._stopping.wait()
        await running.stop()
