"""Words on their way from the model to the page, and what each session costs.

Levels follow each other on one server: each keeps the sessions of the one before.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

from . import children
from .plan import DELTAS_PER_SECOND, Plan
from .proc import CpuMeter, memory
from .site import Site, running_site
from .stamps import latencies, stream_prompt
from .viewer import Viewer

SETTLE_SECONDS = 2.0  # so that memory is what stays, not what a turn just used

Watched = dict[UUID, Viewer]


async def measure(plan: Plan, folder: Path, demo_url: str) -> dict[str, Any]:
    with running_site(folder / "streams", demo_url) as site:
        async with AsyncExitStack() as stack:
            product, memories = await _measure_site(site, plan, stack)
    alone = await asyncio.to_thread(
        children.ask,
        "sdk_alone",
        folder / "sdk",
        *(demo_url, str(folder / "sdk-streams")),
        *("--levels", *map(str, plan.levels)),
        *("--words", *(str(plan.stream_words(level)) for level in plan.levels)),
    )
    return {"product": product, "sdk_alone": alone, "memories": memories}


async def _measure_site(
    site: Site, plan: Plan, stack: AsyncExitStack
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    watched: Watched = {}
    found, memories = [], [_weigh(site, 0)]
    for level in plan.levels:
        await _grow(site, watched, level, stack)
        await asyncio.sleep(SETTLE_SECONDS)
        memories.append(_weigh(site, level))
        found.append(await _stream(site, watched, plan))
    return found, memories


def _weigh(site: Site, sessions: int) -> dict[str, int]:
    now = memory(site.pid)
    return {"sessions": sessions, "rss_kb": now.rss_kb, "pss_kb": now.pss_kb}


async def _grow(
    site: Site, watched: Watched, level: int, stack: AsyncExitStack
) -> None:
    """Start agents until there are `level`, each with a page open and one turn done."""
    while len(watched) < level:
        session_id = await site.start_agent(stream_prompt(1, DELTAS_PER_SECOND))
        viewer = await stack.enter_async_context(site.page(session_id))
        await viewer.until_words(1)
        watched[session_id] = viewer
    await site.until_idle()


async def _stream(site: Site, watched: Watched, plan: Plan) -> dict[str, Any]:
    words = plan.stream_words(len(watched))
    prompt = stream_prompt(words, DELTAS_PER_SECOND)
    meter = CpuMeter(site.pid).start()
    for viewer in watched.values():
        viewer.forget()
    await asyncio.gather(*(site.send(session_id, prompt) for session_id in watched))
    for viewer in watched.values():
        await viewer.until_words(words)
    own, clis = meter.percent()
    await site.until_idle()
    streams = [viewer.sightings.seen for viewer in watched.values()]
    return {
        "sessions": len(watched),
        "latency": latencies(streams).as_json(),
        "cpu_percent": round(own),
        "cli_cpu_percent": round(clis),
    }
