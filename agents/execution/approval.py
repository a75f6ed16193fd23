"""The one gate of every tool call: policy first, then a person, else refusal.

`Gate.review` and `Gate.answer` are idempotent per (session, tool_use_id), so nothing
depends on which of the SDK's two callbacks the CLI happens to call. Whoever waits here
re-reads the row: the doorbell only makes it quick.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from claude_agent_sdk import (
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
)
from django.utils import timezone

from agents.conf import conf
from agents.domain import (
    approvals,
    blocks,
    next_mode,
    permissions,
    releases,
    transcripts,
)
from agents.events.bus import Inbox, approval_group, listen
from agents.models import AgentSession, ApprovalRequest, Run
from agents.models.approvals import ApprovalKind, ApprovalStatus
from agents.models.messages import ToolOutcome
from agents.models.users import OnTimeout
from agents.policy.decision import ToolCall, Verdict, decide
from agents.policy.modes import PLAN_WRITERS, Effect
from agents.tasks import spawn

from .database import in_database, own_database_thread
from .turn import Turn

logger = logging.getLogger(__name__)

DENIED_BY_PERSON = "The user denied this call."
USED_ALREADY = "The answer to this request was used already."
NOT_WAITED_FOR = "The request ended before anybody decided it."
MADE_AGAIN = "The server was restarted first; the call was made again afterwards."
REFUSED_EDIT = "The user approved this call with an edited input, which was refused: {}"
OTHER_CALL = "This call came under the id of another one, so it was not run."


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the CLI describes it."""

    tool_use_id: str
    tool_name: str
    tool_input: dict[str, Any]
    agent_id: str = ""


@dataclass(slots=True)
class Places:
    """Where the agent sees its folders; the CLI's moves when it resumes."""

    home: Path
    tmp: Path
    config_dir: Path


@dataclass(slots=True)
class Gate:
    """Decides the calls of one CLI process. `turn` is the run that is on now."""

    places: Places
    turn: Turn | None = field(default=None, init=False)
    told: dict[str, str] = field(default_factory=dict, init=False)
    """What the conversation was told of its surroundings, by title and digest."""
    _permission_modes: dict[str, str] = field(default_factory=dict)
    _edited: dict[str, dict[str, Any]] = field(default_factory=dict)

    def begin_turn(self, turn: Turn) -> None:
        self.turn = turn

    def end_turn(self) -> None:
        """From here on every call is refused."""
        if self.turn is not None and self.turn.is_compacted:
            self.told.clear()  # the summary need not have kept it
        self.turn = None
        self._permission_modes.clear()
        self._edited.clear()

    def note_permission_mode(self, tool_use_id: str, mode: str) -> None:
        """Only the hook is told the mode, so it is kept for the second caller."""
        self._permission_modes[tool_use_id] = mode

    def take_edit(self, tool_use_id: str) -> dict[str, Any] | None:
        """The input a person put in place of the model's, once."""
        return self._edited.pop(tool_use_id, None)

    async def review(self, turn: Turn, call: Call) -> Verdict:
        """What policy says about the call right now; a refusal is recorded."""
        verdict = await self._verdict(turn, call, call.tool_input)
        if verdict.effect == Effect.DENY:
            await self.record_denial(turn, call, verdict.reason)
        return verdict

    async def answer(self, turn: Turn, call: Call) -> PermissionResult:
        """Decide the call, waiting for a person where policy asks for one."""
        verdict = await self._verdict(turn, call, call.tool_input)
        if verdict.effect == Effect.DENY:
            await self.record_denial(turn, call, verdict.reason)
            await in_database(_use_up, turn.run, call)
            return PermissionResultDeny(message=verdict.reason)
        # A call that was asked about keeps its answer, whatever policy says by now.
        approval = await in_database(_find, turn.run, call)
        if approval is None:
            if verdict.effect == Effect.ALLOW:
                if verdict.rule_id:
                    await in_database(permissions.count_hit, verdict.rule_id)
                return PermissionResultAllow()
            granted = await in_database(
                approvals.take_grant, turn.run, call.tool_name, call.tool_input
            )
            if granted is not None:
                await self._close_first_try(turn, granted)
                return await self._deliver(turn, call, granted)
            approval = await in_database(_open, turn.run, call, verdict)
        return await self._answer_request(turn, call, approval)

    async def _answer_request(
        self, turn: Turn, call: Call, approval: ApprovalRequest
    ) -> PermissionResult:
        if not approvals.is_about(approval, call.tool_name, call.tool_input):
            return PermissionResultDeny(message=OTHER_CALL)
        with turn.waits_for_person():
            decided = await self._wait(turn, approval)
        if decided.status == ApprovalStatus.PENDING:
            # Nobody came in time, and the CLI can't keep this call: the turn ends
            # here, and the call is made again once somebody decided.
            turn.stop("parking")
            return PermissionResultDeny(message=NOT_WAITED_FOR, interrupt=True)
        if not await in_database(approvals.consume, decided.pk):
            return PermissionResultDeny(message=USED_ALREADY)
        return await self._deliver(turn, call, decided)

    async def hold(self, turn: Turn, call: Call, verdict: Verdict) -> bool:
        """Wait for a person from within the hook, which alone can put a call aside.

        Returns: whether to put it aside: nobody came while the wait was hot, and the
            CLI can take the call up again in another process.
        """
        if verdict.effect != Effect.ASK or call.agent_id:
            return False
        if await in_database(
            approvals.find_grant, turn.run, call.tool_name, call.tool_input
        ):
            return False
        with turn.waits_for_person():  # from the moment when others see that it asks
            approval = await in_database(_open, turn.run, call, verdict)
            waited = await self._wait(turn, approval)
        if waited.status != ApprovalStatus.PENDING:
            return False
        if not await turn.board.becomes_alone(call.tool_use_id):
            return False
        turn.deferred_tool_use_id = call.tool_use_id
        return True

    async def _verdict(
        self, turn: Turn, call: Call, tool_input: dict[str, Any]
    ) -> Verdict:
        permission_mode = self._permission_modes.get(call.tool_use_id, "default")
        plan_slug = ""
        if permission_mode == "plan" and call.tool_name in PLAN_WRITERS:
            conversation = turn.run.branch.sdk_session_id
            plan_slug = await in_database(transcripts.plan_slug_of, conversation)
        around = permissions.Surroundings(
            jailed=turn.jailed,
            home=self.places.home,
            tmp=self.places.tmp,
            config_dir=self.places.config_dir,
            plan_slug=plan_slug,
        )
        context = await in_database(permissions.policy_context, turn.session_id, around)
        return decide(
            ToolCall(
                call.tool_name,
                tool_input,
                agent_id=call.agent_id or None,
                permission_mode=permission_mode,
            ),
            context,
        )

    async def _wait(self, turn: Turn, approval: ApprovalRequest) -> ApprovalRequest:
        try:
            return await wait_for_decision(approval, cooling=turn.cooling)
        except asyncio.CancelledError:
            turn.settled.add(approval.tool_use_id)
            if not turn.stopping.is_set():
                # The CLI withdrew the call by itself; nobody needs to answer it.
                spawn(_withdraw(approval), name=f"withdraw-{approval.pk}")
            raise

    async def _deliver(
        self, turn: Turn, call: Call, approval: ApprovalRequest
    ) -> PermissionResult:
        if approval.status != ApprovalStatus.APPROVED:
            return await self._deliver_denial(turn, call, approval)
        updated = approval.updated_input
        is_edited = updated is not None and approval.kind != ApprovalKind.QUESTION
        # A person may edit the input, but not past the guards; nor does an answer
        # outlive a change of the mode that forbids the call.
        judged = updated if updated is not None and is_edited else call.tool_input
        verdict = await self._verdict(turn, call, judged)
        if verdict.effect == Effect.DENY:
            why = REFUSED_EDIT.format(verdict.reason) if is_edited else verdict.reason
            await self.record_denial(turn, call, why)
            return PermissionResultDeny(message=why)
        if is_edited:
            await in_database(_record_edit, turn.run, call, approval)
            self._edited[call.tool_use_id] = judged
        if approval.kind == ApprovalKind.PLAN:
            is_left = await in_database(next_mode.carry_out_plan, turn.run, approval)
            turn.has_approved_plan |= is_left
        return PermissionResultAllow(
            updated_input=updated, updated_permissions=_after_plan(approval)
        )

    async def _deliver_denial(
        self, turn: Turn, call: Call, approval: ApprovalRequest
    ) -> PermissionResult:
        if approval.status == ApprovalStatus.DENIED:
            message = approval.message or DENIED_BY_PERSON
        else:
            message = NOT_WAITED_FOR
        await self.record_denial(turn, call, message)
        if approval.stops_run:
            turn.is_denied_and_stopped = True
        return PermissionResultDeny(message=message, interrupt=approval.stops_run)

    async def _close_first_try(self, turn: Turn, granted: ApprovalRequest) -> None:
        """The call has a new id now; under the old one nothing will come any more."""
        await in_database(
            blocks.record_tool_result,
            turn.run,
            tool_use_id=granted.tool_use_id,
            outcome=ToolOutcome.CANCELLED,
            text=MADE_AGAIN,
        )

    async def record_denial(self, turn: Turn, call: Call, reason: str) -> None:
        turn.settled.add(call.tool_use_id)
        await in_database(
            blocks.record_denial,
            turn.run,
            tool_use_id=call.tool_use_id,
            tool_name=call.tool_name,
            tool_input=call.tool_input,
            reason=reason,
        )


def _find(run: Run, call: Call) -> ApprovalRequest | None:
    return ApprovalRequest.objects.filter(
        session_id=run.session_id, tool_use_id=call.tool_use_id
    ).first()


def _use_up(run: Run, call: Call) -> None:
    """What was answered about a call that is refused is not told a second time."""
    approval = _find(run, call)
    if approval is not None:
        approvals.consume(approval.pk)


def _open(run: Run, call: Call, verdict: Verdict) -> ApprovalRequest:
    """Open the request; what was changed just now answers it at once."""
    approval = approvals.open_approval(
        run,
        tool_use_id=call.tool_use_id,
        tool_name=call.tool_name,
        tool_input=call.tool_input,
        agent_id=call.agent_id,
        reason=verdict.reason,
        rule_id=verdict.rule_id or "",
    )
    if approval.is_pending:
        releases.settle_by_policy(approval)
    return approval


def _record_edit(run: Run, call: Call, approval: ApprovalRequest) -> None:
    by = approval.decided_by
    blocks.record_edit(
        run,
        tool_use_id=call.tool_use_id,
        tool_name=call.tool_name,
        tool_input=approval.updated_input or {},
        original=approval.tool_input,
        edited_by=by.get_username() if by else "",
    )


def _after_plan(approval: ApprovalRequest) -> list[PermissionUpdate] | None:
    """An approved plan is carried out: the CLI leaves its plan mode."""
    if approval.kind != ApprovalKind.PLAN:
        return None
    return [PermissionUpdate(type="setMode", mode="default", destination="session")]


async def wait_for_decision(
    approval: ApprovalRequest, *, cooling: asyncio.Event | None = None
) -> ApprovalRequest:
    """Wait until the request is no longer pending; its `on_timeout` may end it.

    Woken by the approval's group; should that doorbell get lost, by the next look.

    Args:
        cooling: given by who can park the call: then the wait also ends, with the
            request still pending, when the event is set or the hot window is over.
    """
    async with listen(approval_group(approval.pk)) as inbox:
        while True:
            current = await in_database(_reload, approval.pk)
            if current.status != ApprovalStatus.PENDING:
                return current
            if cooling is not None and (cooling.is_set() or _is_cold(current)):
                return current
            await _rest(inbox, _patience_seconds(current), cooling)


async def _rest(inbox: Inbox, seconds: float, cooling: asyncio.Event | None) -> None:
    """Until the doorbell rings, the time is up, or the wait is to end."""
    if cooling is None:
        await inbox.wait(seconds)
        return
    waits = [
        spawn(inbox.wait(seconds), name="approval-bell"),
        spawn(cooling.wait(), name="approval-cooling"),
    ]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)


def _is_cold(approval: ApprovalRequest) -> bool:
    return approval.hot_until is not None and approval.hot_until <= timezone.now()


def _patience_seconds(approval: ApprovalRequest) -> float:
    """Up to the next look: at the end of the hot window at the latest."""
    poll = conf().approval_poll_seconds
    if approval.hot_until is None:
        return poll
    left = (approval.hot_until - timezone.now()).total_seconds()
    return min(poll, max(left, 0.0))


async def _withdraw(approval: ApprovalRequest) -> None:
    """In a thread of its own: the client's may end before this is done."""
    async with own_database_thread():
        await in_database(approvals.cancel_approval, approval)


def _reload(approval_id: UUID) -> ApprovalRequest:
    approval = ApprovalRequest.objects.select_related("session").get(pk=approval_id)
    if approval.status != ApprovalStatus.PENDING or approval.hot_until is None:
        return approval
    if _is_cold(approval) and approval.session.on_timeout == OnTimeout.DENY:
        approvals.deny_on_timeout(approval)
        approval.refresh_from_db()
    return approval


async def request_approval(
    session: AgentSession,
    tool_name: str,
    tool_input: dict[str, Any],
    timeout_seconds: float | None = None,
    track_analytics: bool = True,
    *,
    tool_use_id: str | None = None,
    reason: str = "",
) -> dict[str, Any]:
    """Ask the session's people about a call and wait for the answer.

    For callers outside the CLI, such as tools of our own. Each call without a
    `tool_use_id` is a request of its own.

    Args:
        timeout_seconds: the hot window; None takes the site's.
        track_analytics: whether asking and answering are kept as analytics events.

    Returns: {"behavior": "allow" | "deny", "message": …, "updated_input": …}
    """
    approval = await in_database(
        _open_for,
        session,
        tool_name=tool_name,
        tool_input=tool_input,
        hot_seconds=timeout_seconds,
        track_analytics=track_analytics,
        tool_use_id=tool_use_id or f"own-{uuid4()}",
        reason=reason,
    )
    decided = await wait_for_decision(approval)
    await in_database(approvals.consume, decided.pk)
    is_allowed = decided.status == ApprovalStatus.APPROVED
    return {
        "behavior": "allow" if is_allowed else "deny",
        "message": decided.message or ("" if is_allowed else DENIED_BY_PERSON),
        "updated_input": decided.updated_input,
    }


def _open_for(session: AgentSession, **request: Any) -> ApprovalRequest:
    return approvals.open_approval(session.runs.unfinished().get(), **request)
