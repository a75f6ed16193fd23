"""Daphne with the engine inside: one event loop, started and stopped in order.

Daphne has no ASGI lifespan and its own signal handling would end the sockets before
the runs. So the signals are ours: one task starts the engine, waits for the signal,
stops the runs while pages are still served, and then stops Daphne.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

from channels.routing import get_default_application
from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from twisted.internet import reactor

from agents.errors import AgentsError
from agents.execution.engine import Engine
from agents.tasks import spawn

logger = logging.getLogger(__name__)

ENGINE_STOP_SECONDS = 8.0
EXIT_SECONDS = 9.5  # from the signal to the end of the process, whatever hangs
APPLICATION_CLOSE_SECONDS = 3
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class ServingError(Exception):
    """The server can't work; the text says why and what to do."""


class Serving:
    """One run of the server. `run` blocks; `stop` may be called from any thread."""

    def __init__(
        self, host: str, port: int, *, on_ready: Callable[[int], None]
    ) -> None:
        self._host = host
        self._port = port
        self._on_ready = on_ready
        self._failure = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._ended = threading.Event()
        self._daphne = _Daphne(
            application=get_default_application(),
            endpoints=build_endpoint_description_strings(host=host, port=port),
            signal_handlers=False,
            application_close_timeout=APPLICATION_CLOSE_SECONDS,
            server_name="OpenSwarm",
        )

    def run(self) -> None:
        """Serve until `stop`, or until one of STOP_SIGNALS in the main thread.

        Raises: ServingError.
        """
        # Not callWhenRunning: that is called before the loop runs.
        reactor.callLater(0, self._begin)  # type: ignore[arg-type]  # an interface
        try:
            self._daphne.run()
        finally:
            self._ended.set()
        if not self._daphne.listening_addresses:
            raise ServingError(f"Nothing can listen on {self._host} port {self._port}.")
        if self._failure:
            raise ServingError(self._failure)

    def stop(self) -> None:
        """Stop runs and server; returns when it has ended, or at the latest by then."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._ended.wait(EXIT_SECONDS)

    def _begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                self._loop.add_signal_handler(number, self._stopping.set)
        spawn(self._main(), name="serve")

    async def _main(self) -> None:
        engine = Engine()
        try:
            await engine.start()
            self._on_ready(self._daphne.listening_addresses[0][1])
            await self._stopping.wait()
        except AgentsError as error:
            self._failure = error.user_message
        except Exception:
            logger.exception("the engine failed to start")
            self._failure = "OpenSwarm could not start; the log says why."
        finally:
            await self._stop(engine)

    async def _stop(self, engine: Engine) -> None:
        logger.info("stopping; what agents have written is kept")
        _exit_at_the_latest_in(EXIT_SECONDS)
        try:
            await asyncio.wait_for(engine.stop(), ENGINE_STOP_SECONDS)
        except TimeoutError:
            logger.error("the engine did not stop in time")
        finally:
            self._daphne.stop()


class _Daphne(Server):  # type: ignore[misc]  # Daphne has no types
    def kill_all_applications(self) -> Any:
        """Cancel what still answers.

        Daphne expects an application behind every connection and fails with a
        KeyError at one that is kept alive between requests; may go when it doesn't.
        """
        for protocol, details in list(self.connections.items()):
            if "application_instance" not in details:
                del self.connections[protocol]
        return super().kill_all_applications()


def _exit_at_the_latest_in(seconds: float) -> None:
    """A thread that hangs must not keep the process: supervisors would kill it."""

    def end() -> None:
        logger.error("the server did not stop in time and is ended")
        os._exit(1)

    watchdog = threading.Timer(seconds, end)
    watchdog.daemon = True
    watchdog.start()


def check_address(host: str, port: int) -> None:
    """Say early, before anything is changed, why nothing can listen there.

    Raises: ServingError with a sentence; Daphne would only log and end as if all
        were well.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
        except (OSError, UnicodeError) as error:
            raise ServingError(_refusal(host, port, error)) from error


def _refusal(host: str, port: int, error: Exception) -> str:
    match getattr(error, "errno", None):
        case errno.EADDRINUSE:
            return (
                f"Port {port} on {host} is in use, perhaps by another OpenSwarm."
                f" Choose another one: make run PORT={port + 1 if port < 65535 else 0}"
            )
        case errno.EACCES:
            return (
                f"Port {port} is not allowed for this user. Choose one above 1023:"
                " make run PORT=8731"
            )
        case errno.EADDRNOTAVAIL | socket.EAI_NONAME:
            return f"{host} is not an address of this machine."
        case _:
            return f"Nothing can listen on {host} port {port}: {error}"
