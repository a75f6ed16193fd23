"""Two agents of the real CLI on the demo model, and the gate between them and us.

One agent's command is denied and must not run. The other's file write stays
unanswered until the first agent has come to its end; it must have waited all that
time. Then it is approved, which shows that such a call does run when it may.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from django.core.management import call_command
from django.db import connections

from agents.conf import data_dir
from agents.domain.accounts import set_role
from agents.domain.approvals import Decision, decide_approval
from agents.domain.sessions import LaunchConfig, launch_agent
from agents.errors import AgentsError
from agents.execution.engine import Engine
from agents.models import AgentSession, ApprovalRequest, Run, User
from agents.models.approvals import ApprovalStatus
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.runs import LIVE_STATES, RunState
from agents.models.users import Role

from .findings import Finding, failed, ok
from .selftest import FOLDER_PREFIX, SUBJECT

T = TypeVar("T")
PATIENCE_SECONDS = 60
LOOK_SECONDS = 0.1
WORDS = "The doctor says no."


class _SetbackError(Exception):
    """The agents did not come to the point that was to be looked at."""


def rehearse() -> list[Finding]:
    """Raises: AgentsError in any data folder that wasn't made for this."""
    if not data_dir().name.startswith(FOLDER_PREFIX):
        raise AgentsError("The self-test is started by manage.py doctor.")
    call_command("migrate", interactive=False, verbosity=0)
    try:
        return asyncio.run(_with_engine())
    except (_SetbackError, AgentsError, OSError) as error:
        return [failed(SUBJECT, str(error))]


async def _with_engine() -> list[Finding]:
    engine = Engine()
    await engine.start()
    try:
        return await asyncio.to_thread(_drive)
    finally:
        await engine.stop()


def _drive() -> list[Finding]:
    try:
        user = User(username="doctor")
        set_role(user, Role.OWNER)
        user.save()
        return _play(user)
    finally:
        connections.close_all()


def _play(user: User) -> list[Finding]:
    refused = _Agent(user, "run touch denied.txt")
    patient = _Agent(user, "write the file waiting.txt with the text done")
    patient.asked()
    refused.decide(is_approved=False, message=WORDS)
    refused.finished()
    findings = [judge_denial(refused.session), judge_waiting(patient.session)]
    patient.decide(is_approved=True)
    patient.finished()
    return [*findings, judge_approval(patient.session)]


class _Agent:
    def __init__(self, user: User, task: str) -> None:
        self._user = user
        self.session: AgentSession = launch_agent(user, LaunchConfig(task=task))

    def asked(self) -> ApprovalRequest:
        return self._until(
            lambda: self.session.approvals.pending().first(), "asked for permission"
        )

    def decide(self, *, is_approved: bool, message: str = "") -> None:
        decision = Decision(is_approved=is_approved, message=message)
        decide_approval(self.asked(), self._user, decision)

    def finished(self) -> Run:
        runs = self.session.runs.filter(state=RunState.FINISHED)
        return self._until(runs.first, "came to its end")

    def _until(self, look: Callable[[], T | None], what: str) -> T:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            found = look()
            if found is not None:
                return found
            failure = self.session.runs.exclude(error_text="").first()
            if failure is not None:
                raise _SetbackError(f"an agent failed: {failure.error_text}")
            time.sleep(LOOK_SECONDS)
        raise _SetbackError(f"an agent has not {what} within {PATIENCE_SECONDS} s")


def judge_denial(session: AgentSession) -> Finding:
    if _has_file(session, "denied.txt"):
        return failed(SUBJECT, "a denied command was run")
    results = session.messages.filter(role=MessageRole.TOOL_RESULT)
    told = results.filter(outcome=ToolOutcome.DENIED, text__contains=WORDS).exists()
    if not told:
        return failed(SUBJECT, "the agent was not told that its command was denied")
    return ok(SUBJECT, "a denied command is not run, and the agent is told")


def judge_waiting(session: AgentSession) -> Finding:
    if _has_file(session, "waiting.txt"):
        return failed(SUBJECT, "a file was written before anybody had approved it")
    is_pending = session.approvals.filter(status=ApprovalStatus.PENDING).exists()
    is_alive = session.runs.filter(state__in=LIVE_STATES).exists()
    if not (is_pending and is_alive):
        return failed(SUBJECT, "an agent did not wait for the answer to its question")
    return ok(SUBJECT, "an unanswered request waits")


def judge_approval(session: AgentSession) -> Finding:
    if not _has_file(session, "waiting.txt"):
        return failed(SUBJECT, "an approved file was not written")
    return ok(SUBJECT, "an approved one is carried out")


def _has_file(session: AgentSession, name: str) -> bool:
    return Path(session.cwd, name).exists()
