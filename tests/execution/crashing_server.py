"""A server's engine in a process of its own, for tests that kill it.

    python -m tests.execution.crashing_server DEMO_URL DATABASE_FILE [WHERE ID...]

Runs until it is killed; SIGTERM stops it as `serve` does. With WHERE, as in
"after agents.domain.runs.claim_run", that thread stands still there for good when it
is about one of these runs or sessions, and a file says so (`standing_file`).
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
from django.conf import settings


async def main(demo_url: str) -> None:
    from agents.execution.engine import Engine

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    engine = Engine()
    await engine.start(demo_url=demo_url)
    await stop.wait()
    await engine.stop()


def standing_file(pid: int) -> Path:
    return Path(settings.DATA_DIR, f"standing-{pid}")


def stand_at(where: str, *ids: str) -> None:
    when, _, path = where.partition(" ")
    module_name, _, name = path.rpartition(".")
    module = importlib.import_module(module_name)
    original: Callable[..., Any] = getattr(module, name)

    def passing(*args: Any, **kwargs: Any) -> Any:
        if when == "before":
            _stand_if_about(args[0], ids)
        result = original(*args, **kwargs)
        if when == "after":
            _stand_if_about(result, ids)
        return result

    setattr(module, name, passing)


def _stand_if_about(run: Any, ids: tuple[str, ...]) -> None:
    if str(getattr(run, "session_id", run)) in ids:
        standing_file(os.getpid()).touch()
        threading.Event().wait()


if __name__ == "__main__":
    settings.DATABASES["default"]["NAME"] = sys.argv[2]
    django.setup()
    if len(sys.argv) > 3:
        stand_at(*sys.argv[3:])
    asyncio.run(main(sys.argv[1]))
