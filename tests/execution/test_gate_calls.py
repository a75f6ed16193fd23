"""The gate asked directly: ids come from the model's side, so they are not trusted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from claude_agent_sdk import (
    CanUseTool,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from agents.domain import approvals
from agents.domain.approvals import Decision
from agents.execution.approval import OTHER_CALL, USED_ALREADY, Call, Gate, Places
from agents.execution.hooks import create_sdk_hooks
from agents.execution.turn import Turn
from agents.models import ApprovalRequest, Run, User
from agents.tasks import spawn
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)

ASKED = {"command": "touch asked"}


@pytest.fixture
def turn_run(transactional_db: None) -> Run:
    alice = factories.make_user("alice")
    return factories.start_turn(factories.make_session(alice))


def gate() -> Gate:
    places = Places(home=Path("/home"), tmp=Path("/tmp"), config_dir=Path("/home/.c"))
    return Gate(places)


def decided(run: Run, tool_use_id: str) -> ApprovalRequest:
    owner: User = run.session.owner
    approval = factories.ask_approval(run, tool_use_id, "Bash", ASKED)
    return approvals.decide_approval(approval, owner, Decision(is_approved=True))


async def test_an_approval_is_used_once(turn_run: Run) -> None:
    turn, asking = Turn(turn_run, jailed=True), gate()
    await sync_to_async(decided)(turn_run, "toolu_1")
    call = Call("toolu_1", "Bash", ASKED)

    first = await asking.answer(turn, call)
    second = await asking.answer(turn, call)

    assert isinstance(first, PermissionResultAllow)
    assert isinstance(second, PermissionResultDeny)
    assert second.message == USED_ALREADY


async def test_an_approval_does_not_serve_another_input_under_the_same_id(
    turn_run: Run,
) -> None:
    turn, asking = Turn(turn_run, jailed=True), gate()
    await sync_to_async(decided)(turn_run, "toolu_1")

    other = await asking.answer(turn, Call("toolu_1", "Bash", {"command": "make"}))
    asked = await asking.answer(turn, Call("toolu_1", "Bash", ASKED))

    assert isinstance(other, PermissionResultDeny)
    assert other.message == OTHER_CALL
    assert isinstance(asked, PermissionResultAllow)


async def test_no_call_runs_before_the_files_are_recorded(turn_run: Run) -> None:
    turn, asking = Turn(turn_run, jailed=True), gate()
    asking.turn = turn
    await sync_to_async(decided)(turn_run, "toolu_1")
    can_use_tool, _, _ = create_sdk_hooks(asking)
    context = ToolPermissionContext(tool_use_id="toolu_1")

    asked = spawn(_ask(can_use_tool, context), name="asked")
    early, _ = await asyncio.wait({asked}, timeout=0.3)
    turn.files_recorded.set()

    assert not early
    assert isinstance(await asked, PermissionResultAllow)


async def _ask(ask: CanUseTool, context: ToolPermissionContext) -> PermissionResult:
    return await ask("Bash", ASKED, context)
