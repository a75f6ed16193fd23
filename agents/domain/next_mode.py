"""Where a session goes on after its mode's work is done: `default_next_mode`.

A mode that only plans is left when a person approves the plan, never before. Any other
is left when a turn ended successfully.
"""

from __future__ import annotations

from django.utils import timezone

from agents.models import AgentSession, ApprovalRequest, Message, Mode, Run, User
from agents.models.messages import MessageRole
from agents.models.runs import RunKind
from agents.policy.modes import plans_first

from . import notices
from .blocks import add_message
from .modes import find_kept_mode
from .sessions import update_session

CARRY_OUT = "The plan is approved. Carry it out now."


def carry_out_plan(run: Run, approval: ApprovalRequest) -> bool:
    """Let a session that only plans leave its mode by a plan that was approved.

    Returns: False where it was not in such a mode, or may not leave it.
    """
    session = _session_of(run)
    if not plans_first(session.allowed_tools):
        return False
    actor = approval.decided_by or session.owner
    return _go_on(session, run, actor, "The plan is approved.")


def move_on(run: Run, mode: str) -> bool:
    """After a turn that ended successfully in the mode that it began in.

    Returns: whether the session is in another mode now.
    """
    session = _session_of(run)
    is_left = session.mode != mode or plans_first(session.allowed_tools)
    if is_left or run.kind == RunKind.COMPACT:
        return False
    return _go_on(session, run, session.owner, "The turn is done.")


def ask_to_carry_out(run: Run) -> Message:
    """Put the next turn, with the tools of the new mode, before all that is queued."""
    return add_message(
        run.session_id,
        branch_id=run.branch_id,
        role=MessageRole.USER,
        text=CARRY_OUT,
        hidden=True,
        queued_at=timezone.now(),
        is_urgent=True,
    )


def _session_of(run: Run) -> AgentSession:
    return AgentSession.objects.select_related("owner").get(pk=run.session_id)


def _go_on(session: AgentSession, run: Run, actor: User, why: str) -> bool:
    """A session that was given less than its mode has is not widened by the next."""
    mode = find_kept_mode(session.owner, session.mode)
    if mode is None or session.allowed_tools != mode.tools:
        return False
    following = _following(mode, session)
    if following is None:
        return False
    update_session(session, actor, mode=following.slug)
    text = f"{why} The session goes on in the mode “{following.name}”."
    notices.add_notice(run, "mode", text, before=mode.slug, after=following.slug)
    return True


def _following(mode: Mode, session: AgentSession) -> Mode | None:
    if mode.default_next_mode in ("", mode.slug):
        return None
    return find_kept_mode(session.owner, mode.default_next_mode)
