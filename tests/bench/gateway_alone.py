"""A process with nothing but the gateway in it, and an open line to the demo model."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from uuid import uuid4

import django

from .children import say


async def _serve(demo_url: str) -> None:
    from agents.gateway.server import Gateway, Upstream
    from agents.models.providers import ProviderKind

    gateway = Gateway(folder=Path(os.environ["OPENSWARM_DATA_DIR"], "run"))
    gateway.demo_url = demo_url
    await gateway.start()
    upstream = Upstream(None, ProviderKind.DEMO, demo_url, "")
    line = gateway.open_line(uuid4(), upstream)  # no such session: books stay empty
    say({"url": gateway.base_url, "token": line.token})
    await asyncio.to_thread(sys.stdin.read)
    await gateway.stop()


def main() -> None:
    django.setup()
    from django.core.management import call_command

    call_command("migrate", interactive=False, verbosity=0)
    asyncio.run(_serve(sys.argv[1]))


if __name__ == "__main__":
    main()
