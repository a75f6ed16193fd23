"""The self-test's verdicts: each would notice the fault it is there for."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.errors import AgentsError
from agents.management.doctor import rehearsal
from agents.models import AgentSession, Run
from agents.models.messages import ToolOutcome
from tests import factories


def test_it_refuses_a_data_folder_of_somebody_else() -> None:
    with pytest.raises(AgentsError):
        rehearsal.rehearse()


def test_a_denied_command_that_ran_is_noticed(session: AgentSession, run: Run) -> None:
    factories.call_tool(run)
    denied = f"Denied: {rehearsal.WORDS}"
    factories.return_result(run, text=denied, outcome=ToolOutcome.DENIED)
    assert rehearsal.judge_denial(session).level == "ok"

    Path(session.cwd, "denied.txt").touch()
    assert rehearsal.judge_denial(session).level == "failed"


def test_a_denial_that_the_agent_never_heard_is_noticed(
    session: AgentSession, run: Run
) -> None:
    factories.call_tool(run)
    factories.return_result(run, outcome=ToolOutcome.OK)

    assert rehearsal.judge_denial(session).level == "failed"


def test_an_agent_that_did_not_wait_is_noticed(session: AgentSession, run: Run) -> None:
    factories.ask_approval(run)
    assert rehearsal.judge_waiting(session).level == "ok"

    Path(session.cwd, "waiting.txt").touch()
    assert rehearsal.judge_waiting(session).level == "failed"

    Path(session.cwd, "waiting.txt").unlink()
    factories.end_turn(run)
    assert rehearsal.judge_waiting(session).level == "failed"


def test_an_approved_call_that_did_not_run_is_noticed(session: AgentSession) -> None:
    assert rehearsal.judge_approval(session).level == "failed"

    Path(session.cwd, "waiting.txt").touch()
    assert rehearsal.judge_approval(session).level == "ok"
