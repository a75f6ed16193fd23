"""From Send to the first word on the page, of a new session and of a warm one."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from . import children
from .plan import DELTAS_PER_SECOND, Plan
from .site import Site, running_site
from .stamps import NS_PER_MS, stream_prompt

WORDS = 3


async def measure(plan: Plan, folder: Path, demo_url: str) -> dict[str, Any]:
    with running_site(folder / "first", demo_url) as site:
        await _round(site)  # the server's own first request loads its code
        rounds = [await _round(site) for _ in range(plan.first_token_rounds)]
    alone = await asyncio.to_thread(
        children.ask,
        "sdk_alone",
        folder / "sdk",
        *(demo_url, str(folder / "sdk-first")),
        *("--rounds", str(plan.first_token_rounds)),
    )
    product = {
        "cold_ms": [cold for cold, _ in rounds],
        "warm_ms": [warm for _, warm in rounds],
    }
    return {"product": product, "sdk_alone": alone}


async def _round(site: Site) -> tuple[float, float]:
    """Cold includes the redirect and the page, as a person meets them."""
    prompt = stream_prompt(WORDS, DELTAS_PER_SECOND)
    started = time.monotonic_ns()
    session_id = await site.start_agent(prompt)
    async with site.page(session_id) as viewer:
        await viewer.until_words(WORDS)
        cold = (viewer.first_seen_at - started) / NS_PER_MS
        await site.until_idle()
        viewer.forget()
        started = time.monotonic_ns()
        await site.send(session_id, prompt)
        await viewer.until_words(WORDS)
        warm = (viewer.first_seen_at - started) / NS_PER_MS
    await site.until_idle()
    return cold, warm
