"""Plan mode through the real CLI: the plan, its approval, and what follows."""

from __future__ import annotations

import json

import pytest

from agents.demo.server import DemoServer
from agents.execution.engine import Engine
from agents.models import User

from . import conftest
from .conftest import Chat, in_thread

conftest.PATIENCE_SECONDS = 1
from .test_gate_policy import INERT, script, tree, write

pytestmark = pytest.mark.cli

PLAN = 'plan "1. Write made.txt"'


async def test_a_plan_is_rejected_revised_approved_and_carried_out(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice,
        script(PLAN, write("late.txt")),
        mode="plan",
        security_mode="full",
    )
    card = await chat.decide(is_approved=False, message="Name the file first.")
    assert (card.kind, card.tool_input["plan"]) == ("plan", "1. Write made.txt")
    first = await chat.finished()

    # The reason went to the model, and it plans on.
    requests = await chat.requests(demo)
    assert "Name the file first." in json.dumps(requests[-1].body)
    offered = {tool for request in requests for tool in request.tools} - {INERT}
    assert "Bash" not in offered and "NotebookEdit" not in offered
    assert first.success
    assert (await chat.reload()).mode == "plan"
    assert tree(chat) == []

    await chat.send(script(PLAN, write("too-late.txt")))
    await chat.decide(is_approved=True)
    run = await chat.finished(3)

    for row in await chat.rows():
        print(row.role, row.tool_name, row.outcome, row.text[:300], row.hidden)
    assert run.success
    assert [
        r.stop_reason for r in await in_thread(lambda: list(chat.session.runs.all()))
    ] == ["no_tool_calls"] * 3
    assert (await chat.reload()).mode == "agent"
    assert (
        "mode",
        "The plan is approved. The session goes on in the mode “Agent”.",
    ) in await chat.notices()
    assert tree(chat) == []
    last = (await chat.requests(demo))[-1]
    assert {"Bash", "Write", "Agent"} <= set(last.tools)
    assert (await chat.prompts(demo))[-1] == "The plan is approved. Carry it out now."
