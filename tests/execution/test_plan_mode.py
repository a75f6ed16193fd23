"""Plan mode through the real CLI: the plan, its approval, and what follows."""

from __future__ import annotations

import json

import pytest

from agents.demo.server import DemoServer
from agents.domain import modes
from agents.execution.engine import Engine
from agents.models import Mode, User
from agents.models.runs import RunState

from .conftest import Chat, in_thread, until
from .test_gate_policy import INERT, Override, script, tree, write

pytestmark = pytest.mark.cli

PLAN = 'plan "1. Write made.txt"'
EDITED = json.dumps(
    {"file_path": "$PLAN", "old_string": "made.txt", "new_string": "made.md"}
)
BESIDE = 'tool Write {"file_path": "$PLAN.txt", "content": "x"}'
ABOVE = 'tool Write {"file_path": "$PLAN/../../settings.json", "content": "{}"}'
OTHER = 'tool Write {"file_path": "~/.claude/plans/other.md", "content": "x"}'
DONE = "mcp__openswarm__complete_task"
MOVED = ("mode", "The plan is approved. The session goes on in the mode “Agent”.")


async def test_a_plan_is_rejected_revised_approved_and_carried_out(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice,
        script(PLAN, f"tool Edit {EDITED}", BESIDE, ABOVE, OTHER, write("late.txt")),
        mode="plan",
        security_mode="full",
    )
    card = await chat.decide(is_approved=False, message="Name the file first.")
    assert (card.kind, card.tool_input["plan"]) == ("plan", "1. Write made.txt")
    await chat.finished()

    # The reason went to the model, and it planned on; only the plan was written.
    requests = await chat.requests(demo)
    assert "Name the file first." in json.dumps(requests[-1].body)
    offered = {tool for request in requests for tool in request.tools} - {INERT}
    reading = {"Read", "Glob", "Grep", "AskUserQuestion"}
    assert offered == {*reading, "Write", "Edit", "ExitPlanMode", DONE}
    outcomes = [(r.tool_name, r.outcome) for r in await chat.results()]
    assert outcomes == [
        *(("Write", "ok"), ("ExitPlanMode", "denied"), ("Edit", "ok")),
        *[("Write", "denied")] * 4,
    ]
    assert (await chat.reload()).mode == "plan"
    assert tree(chat) == []

    # Approved, it ends the turn; the next one has the tools to carry it out.
    await chat.send(script(PLAN, write("too-late.txt")))
    await chat.decide(is_approved=True)
    run = await chat.finished(3)

    assert run.success
    assert (await chat.reload()).mode == "agent"
    assert MOVED in await chat.notices()
    assert tree(chat) == []
    last = (await chat.requests(demo))[-1]
    assert {"Bash", "Write", "Agent"} <= set(last.tools)
    assert "The plan is approved. Carry it out now." in (await chat.prompts(demo))[-1]


async def test_a_plan_that_waited_without_a_process_is_carried_out_too(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(approval_hot_seconds=0.2, approval_poll_seconds=0.1)
    chat = await Chat.launch(alice, script(PLAN, write("late.txt")), mode="plan")
    await until(chat.session.runs.filter(state=RunState.PARKED).first)

    await chat.decide(is_approved=True)
    run = await chat.finished(2)

    assert run.success
    assert (await chat.reload()).mode == "agent"
    assert MOVED in await chat.notices()
    assert tree(chat) == []
    assert "Bash" in (await chat.requests(demo))[-1].tools


async def test_after_a_turn_that_ended_well_the_session_is_in_the_next_mode(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    reader = Mode(owner=alice, name="Reader", tools=["Read"], default_next_mode="ask")
    await in_thread(modes.save_mode, reader, alice)
    chat = await Chat.launch(alice, "demo: error 400", mode="reader")
    assert not (await chat.finished()).success
    assert (await chat.reload()).mode == "reader"

    await chat.send("demo: say done")
    assert (await chat.finished(2)).success

    assert (await chat.reload()).mode == "ask"
    assert (await chat.notice("mode")).text == (
        "The turn is done. The session goes on in the mode “Ask”."
    )
    assert set((await chat.requests(demo))[-1].tools) - {INERT} == {"Read", DONE}
