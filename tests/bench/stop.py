"""From Stop, pressed mid-stream, to the moment when no process of the run is left."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any
from uuid import UUID

from agents.execution.processes import find_marked

from .plan import DELTAS_PER_SECOND, Plan
from .site import Site, running_site
from .stamps import NS_PER_MS, stream_prompt

LOOK_SECONDS = 0.005


async def measure(plan: Plan, folder: Path, demo_url: str) -> dict[str, Any]:
    with running_site(folder / "stop", demo_url) as site:
        rounds = [await _round(site) for _ in range(plan.first_token_rounds)]
    return {"gone_ms": rounds}


async def _round(site: Site) -> float:
    session_id = await site.start_agent(stream_prompt(10_000, DELTAS_PER_SECOND))
    async with site.page(session_id) as viewer:
        await viewer.until_words(2)
        if not find_marked(session_id):
            raise RuntimeError("the run has no process that could be stopped")
        started = time.monotonic_ns()
        await site.stop(session_id)
        await asyncio.to_thread(_wait_until_gone, session_id)
        gone = (time.monotonic_ns() - started) / NS_PER_MS
    await site.until_idle()
    return gone


def _wait_until_gone(session_id: UUID) -> None:
    while find_marked(session_id):
        time.sleep(LOOK_SECONDS)
