"""Starting, killing and surviving a server, for tests of crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from django.conf import settings
from django.db import connection

from agents.demo.server import DemoServer

from .crashing_server import standing_file


class Server:
    """An engine in a process of its own; `where` a thread of it stops is optional."""

    def __init__(self, demo: DemoServer, *where: str) -> None:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "openswarm.settings",
            "OPENSWARM_DATA_DIR": str(settings.DATA_DIR),
        }
        program = [sys.executable, "-m", "tests.execution.crashing_server"]
        self.process = subprocess.Popen(
            [*program, demo.url, connection.settings_dict["NAME"], *where],
            env=environment,
            cwd=settings.BASE_DIR,
        )

    @property
    def stands(self) -> bool:
        return standing_file(self.process.pid).exists()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=15)
