"""A server's engine in a process of its own, for tests that kill it.

    python -m tests.execution.crashing_server DEMO_URL DATABASE_FILE

Runs until it is killed; SIGTERM stops it as `serve` does.
"""

from __future__ import annotations

import asyncio
import signal
import sys

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


if __name__ == "__main__":
    settings.DATABASES["default"]["NAME"] = sys.argv[2]
    django.setup()
    asyncio.run(main(sys.argv[1]))
