"""A stretch of network between browser and server that a test can cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.server import Server


class Relay:
    """Passes bytes on; `cut` drops every connection, `refuse` and takes no new one."""

    def __init__(self, server: Server) -> None:
        target = urlsplit(server.address)
        self._target = (str(target.hostname), int(target.port or 80))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._refuses = False
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def cut(self) -> None:
        """Drop all connections, as a lost network does; new ones are welcome."""
        with self._lock:
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def refuse(self, *, refuses: bool = True) -> None:
        self._refuses = refuses
        if refuses:
            self.cut()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.refuse()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._refuses:
                near.close()
                continue
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            threading.Thread(target=self._join, args=(near, far), daemon=True).start()

    def _join(self, near: socket.socket, far: socket.socket) -> None:
        with self._lock:
            self._open |= {near, far}
        back = threading.Thread(target=_pump, args=(far, near), daemon=True)
        back.start()
        _pump(near, far)
        back.join()
        with self._lock:
            self._open -= {near, far}
        near.close()
        far.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
