"""What the gateway adds to each chunk: the same streams with it and without it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2

from .children import child
from .plan import DELTAS_PER_SECOND, Plan
from .stamps import Sightings, latencies, stream_prompt

TIMEOUT_SECONDS = 60


async def measure(plan: Plan, folder: Path, demo_url: str) -> list[dict[str, Any]]:
    found = []
    with child("gateway_alone", folder / "gateway", demo_url) as gateway:
        for level in plan.gateway_levels:
            direct = await _read(demo_url, "bench", level, plan.gateway_words)
            through = await _read(
                gateway["url"], gateway["token"], level, plan.gateway_words
            )
            found.append(
                {
                    "streams": level,
                    "direct": latencies(direct).as_json(),
                    "through": latencies(through).as_json(),
                }
            )
    return found


async def _read(
    base_url: str, token: str, streams: int, words: int
) -> list[dict[int, int]]:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(
        base_url=base_url, headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False
    ) as client:
        return await asyncio.gather(*(_read_one(client, words) for _ in range(streams)))


async def _read_one(client: httpx2.AsyncClient, words: int) -> dict[int, int]:
    sightings = Sightings()
    prompt = stream_prompt(words, DELTAS_PER_SECOND)
    request = {
        "model": "claude-bench",
        "max_tokens": 100_000,
        "stream": True,
        "messages": [{"role": "user", "content": prompt}],
    }
    async with client.stream(
        "POST", "/v1/messages", content=json.dumps(request)
    ) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            sightings.read(line)
    return sightings.seen
