"""Restarts the server when the code changes; for development.

Django's own reloader kills its child: on a change by leaving the process, on Ctrl-C
after a quarter of a second. Both would cut agents off, so the child ends by itself
here, after it has stopped them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from django.utils import autoreload

CODE_CHANGED = 3  # Django's reloader leaves with this status


def run_with_reloader(serve: Callable[[], None], stop: Callable[[], None]) -> NoReturn:
    """Run `serve` in a child process that starts anew when a file changes.

    `stop` is called in the child before it ends, in another thread than `serve`.
    """
    if os.environ.get(autoreload.DJANGO_AUTORELOAD_ENV) == "true":
        _watch(serve, stop)
    _Parent().run()


def _watch(serve: Callable[[], None], stop: Callable[[], None]) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave_once)
    try:
        autoreload.start_django(autoreload.get_reloader(), serve)
    finally:
        stop()
    sys.exit(0)


def _leave_once(number: int, frame: FrameType | None) -> None:
    """Ctrl-C arrives twice, from the terminal and from the parent."""
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(0)


class _Parent:
    """Starts the child again for as long as it ends because of a change."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopping = False

    def run(self) -> NoReturn:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._forward)
        environment = {**os.environ, autoreload.DJANGO_AUTORELOAD_ENV: "true"}
        status = CODE_CHANGED
        while status == CODE_CHANGED and not self._is_stopping:
            self._child = subprocess.Popen(  # noqa: S603  this very program
                autoreload.get_child_arguments(), env=environment
            )
            status = self._child.wait()
        sys.exit(status)

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True
        if self._child is not None:
            self._child.send_signal(number)
