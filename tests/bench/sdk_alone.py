"""The baseline: the same streams, read with the Claude Agent SDK and nothing of ours.

Same CLI, model, tools, system prompt and switches as the product's agents; no server,
no gateway, no jail, no database. All clients live in this one process, as the
product's do.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import django
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, StreamEvent

from agents.conf import conf
from agents.execution.environment import child_environment
from agents.policy.tools import get_all_tool_names

from .children import say
from .plan import DELTAS_PER_SECOND
from .proc import CpuMeter
from .stamps import Sightings, latencies, stream_prompt

TURN_SECONDS = 120


class Agent:
    """One client, and what its last prompt brought."""

    def __init__(self, client: ClaudeSDKClient) -> None:
        self.client = client
        self.sightings = Sightings()

    async def turn(self, prompt: str) -> int:
        """Returns: when the first word was seen, in monotonic nanoseconds."""
        self.sightings = Sightings()
        async with asyncio.timeout(TURN_SECONDS):
            await self.client.query(prompt)
            async for message in self.client.receive_response():
                if isinstance(message, StreamEvent):
                    self._see(message.event)
        return min(self.sightings.seen.values())

    def _see(self, event: dict[str, Any]) -> None:
        if event.get("type") == "content_block_delta":
            self.sightings.read(event["delta"].get("text", ""))


def _options(folder: Path, demo_url: str) -> ClaudeAgentOptions:
    places = {name: folder / name for name in ("workspace", "home", "tmp")}
    for place in places.values():
        place.mkdir(parents=True)
    return ClaudeAgentOptions(
        cwd=places["workspace"],
        env=child_environment(
            session_id=uuid4(),
            home=places["home"],
            tmp=places["tmp"],
            token="bench",
            jailed=False,
            base_url=demo_url,
        ),
        model=conf().default_model,
        effort="high",
        system_prompt={"type": "preset", "preset": "claude_code", "snapshot": False},
        tools=[n for n in get_all_tool_names() if not n.startswith("mcp__")],
        setting_sources=[],
        strict_mcp_config=True,
        include_partial_messages=True,
    )


@asynccontextmanager
async def connected(folder: Path, demo_url: str) -> AsyncIterator[Agent]:
    async with ClaudeSDKClient(_options(folder, demo_url)) as client:
        yield Agent(client)


async def measure_streams(
    demo_url: str, folder: Path, levels: list[int], words_of: list[int]
) -> list[dict[str, Any]]:
    """Each level keeps the clients of the one before and adds its own."""
    found = []
    async with AsyncExitStack() as stack:
        agents: list[Agent] = []
        for level, words in zip(levels, words_of, strict=True):
            agents += await _connect(stack, demo_url, folder, len(agents), level)
            meter = CpuMeter(os.getpid()).start()
            prompt = stream_prompt(words, DELTAS_PER_SECOND)
            await asyncio.gather(*(agent.turn(prompt) for agent in agents))
            own, clis = meter.percent()
            found.append(
                {
                    "sessions": level,
                    "latency": latencies(
                        agent.sightings.seen for agent in agents
                    ).as_json(),
                    "cpu_percent": round(own),
                    "cli_cpu_percent": round(clis),
                }
            )
    return found


async def _connect(
    stack: AsyncExitStack, demo_url: str, folder: Path, first: int, level: int
) -> list[Agent]:
    """Each with one turn behind it, since the first one is slower."""
    agents = []
    for number in range(first, level):
        agent = await stack.enter_async_context(
            connected(folder / str(number), demo_url)
        )
        await agent.turn(stream_prompt(1, DELTAS_PER_SECOND))
        agents.append(agent)
    return agents


async def measure_first_token(
    demo_url: str, folder: Path, rounds: int
) -> dict[str, list[float]]:
    """Milliseconds until the first word: of a new client, and of a second prompt."""
    found: dict[str, list[float]] = {"cold_ms": [], "warm_ms": []}
    prompt = stream_prompt(3, DELTAS_PER_SECOND)
    for number in range(rounds):
        started = time.monotonic_ns()
        async with connected(folder / f"first-{number}", demo_url) as agent:
            found["cold_ms"].append((await agent.turn(prompt) - started) / 1e6)
            started = time.monotonic_ns()
            found["warm_ms"].append((await agent.turn(prompt) - started) / 1e6)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("demo_url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--levels", type=int, nargs="*")
    parser.add_argument("--words", type=int, nargs="*")
    parser.add_argument("--rounds", type=int, default=0)
    asked = parser.parse_args()
    django.setup()
    if asked.rounds:
        job: Any = measure_first_token(asked.demo_url, asked.folder, asked.rounds)
    else:
        job = measure_streams(asked.demo_url, asked.folder, asked.levels, asked.words)
    say(asyncio.run(job))
    sys.stdin.read()


if __name__ == "__main__":
    main()
