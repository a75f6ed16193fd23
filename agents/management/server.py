"""Daphne with the engine inside: one event loop, started and stopped in order.

Daphne has no ASGI lifespan and its own signal handling would end the sockets before
the runs. So the signals are ours: one task starts the engine, waits for the signal,
stops the runs while pages are still served, and then stops Daphne.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import Any

from channels.routing import get_default_application
from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.utils import autoreload
from twisted.internet import reactor

from agents.execution.engine import Engine
from agents.tasks import spawn

logger = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 9
CLOSE_SECONDS = 3
LISTEN_SECONDS = 15


class AddressInUseError(Exception):
    """The server can't listen there; the text says where and what to do."""


class _Serving:
    def __init__(
        self,
        host: str,
        port: int,
        on_listening: Callable[[str, int], None],
        *,
        is_reloading: bool,
    ) -> None:
        self._host = host
        self._port = port
        self._on_listening = on_listening
        self._is_reloading = is_reloading
        self.has_failed = False
        self.server = Server(
            application=get_default_application(),
            endpoints=build_endpoint_description_strings(host=host, port=port),
            signal_handlers=False,
            application_close_timeout=CLOSE_SECONDS,
            server_name="OpenSwarm",
        )

    def begin(self) -> None:
        self._task = spawn(self._main(), name="serve")

    async def _main(self) -> None:
        engine = Engine()
        stopping = asyncio.Event()
        self._handle_signals(stopping, engine)
        try:
            port = await self._listening_port()
            if port is None:
                self.has_failed = True
                return
            await engine.start()
            await asyncio.to_thread(self._on_listening, self._host, port)
            await stopping.wait()
        except Exception:
            logger.exception("the server failed")
            self.has_failed = True
        finally:
            await self._stop(engine)
            self.server.stop()

    async def _listening_port(self) -> int | None:
        """Daphne only logs that it can't listen, so ask it what it listens on."""
        deadline = asyncio.get_running_loop().time() + LISTEN_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            if self.server.listening_addresses:
                return int(self.server.listening_addresses[0][1])
            if not reactor.running:
                break
            await asyncio.sleep(0.02)
        return None

    async def _stop(self, engine: Engine) -> None:
        try:
            await asyncio.wait_for(engine.stop(), SHUTDOWN_SECONDS)
        except TimeoutError:
            logger.error("the engine did not stop in time")

    def _handle_signals(self, stopping: asyncio.Event, engine: Engine) -> None:
        loop = asyncio.get_running_loop()
        if not self._is_reloading:
            for name in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(name, stopping.set)
            return
        # A reload ends the process without a signal; the runs are stopped first.
        autoreload.file_changed.connect(
            _StopBeforeReload(loop, engine), weak=False, dispatch_uid="stop-runs"
        )


class _StopBeforeReload:
    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Engine) -> None:
        self._loop = loop
        self._engine = engine

    def __call__(self, **_: Any) -> None:
        stopped = asyncio.run_coroutine_threadsafe(self._engine.stop(), self._loop)
        stopped.result(SHUTDOWN_SECONDS)


def serve_forever(
    host: str,
    port: int,
    *,
    on_listening: Callable[[str, int], None],
    is_reloading: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises: AddressInUseError when it can't listen.
    """
    serving = _Serving(host, port, on_listening, is_reloading=is_reloading)
    # callWhenRunning fires before the loop runs, and a task needs a running one.
    reactor.callWhenRunning(reactor.callLater, 0, serving.begin)
    serving.server.run()
    # Daphne logs a failure to listen and returns as if all were well.
    if serving.has_failed or not serving.server.listening_addresses:
        raise AddressInUseError(
            f"OpenSwarm can't listen on {host} port {port}: the address is in use or"
            " not allowed. Choose another one: make run PORT=8731."
        )
