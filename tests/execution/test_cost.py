"""The ledger against an independent sum over what the demo model says it sent."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import agents.domain
from agents.demo.server import DemoServer
from agents.demo.state import UsageEntry
from agents.execution.engine import Engine
from agents.models import CostEntry, User

from .conftest import Chat, in_thread

pytestmark = pytest.mark.cli

Override = Callable[..., None]
PRICES_FILE = Path(agents.domain.__path__[0]) / "prices.toml"
PRICES: dict[str, dict[str, float]] = tomllib.loads(PRICES_FILE.read_text())


def price(entry: UsageEntry) -> int:
    name = max((n for n in PRICES if entry.model.startswith(n)), key=len)
    row = PRICES[name]
    return round(
        entry.input_tokens * row["input"]
        + entry.output_tokens * row["output"]
        + entry.cache_read_input_tokens * row["cache_read"]
        + entry.cache_creation_input_tokens * row["cache_write"]
    )


async def test_every_answered_call_is_counted_once(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(cli_max_retries=1)
    before = len(demo.state.usage_log)
    inner = "demo: usage input 700 output 70 cache_read 7000\ndemo: say inside"
    chat = await Chat.launch(
        alice,
        "demo: usage input 1000 output 200 cache_read 30000 cache_write 400\n"
        f"demo: agent {json.dumps(inner)}\ndemo: say outside",
        security_mode="full",
    )
    await chat.finished()
    await chat.send("demo: error 500 times 2\ndemo: say again")
    await chat.finished(2)
    await chat.retry()
    await chat.finished(3)
    await chat.send("demo: hold cost-stop after 3 words")
    await chat.writing("cedar-3")
    await chat.stop()
    run = await chat.finished(4)
    await chat.send("say: and a fresh process")
    await chat.finished(5)

    sent = demo.state.usage_log[before:]
    entries = await in_thread(
        lambda: list(CostEntry.objects.filter(session=chat.session))
    )
    assert {(e.message_id, e.usd_micros) for e in entries} == {
        (entry.message_id, price(entry)) for entry in sent
    }
    assert len(entries) == len(sent)
    assert [e for e in sent if e.agent_id]
    assert (await chat.reload()).cost_usd_micros == sum(map(price, sent))
    assert run.cost_usd_micros == price(sent[-2])
    totals = await in_thread(
        lambda: sum(r.cost_usd_micros for r in chat.session.runs.all())
    )
    assert totals == chat.session.cost_usd_micros
