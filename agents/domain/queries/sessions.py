"""Sessions as pages show them: the list, and what stands around one transcript."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, Q, QuerySet

from agents.domain.model_choice import is_same_model
from agents.domain.providers import is_scripted
from agents.domain.subagents import calls_below
from agents.models import AgentSession, Message, Mode, Run, Task, Ticket, User
from agents.models.messages import MessageRole
from agents.models.runs import LIVE_STATES, RunState, StopReason
from agents.models.sessions import ACTIVE_STATUSES, SessionStatus
from agents.policy.modes import SecurityMode

from .approvals import ApprovalCard, may_answer
from .branches import lineage, within
from .children import Family, load_family
from .context import ContextMeter, load_meter
from .queue import queue_position

LIST_PAGE_SIZE = 30
_LIST_COLUMNS = (
    "owner_id",
    "name",
    "status",
    "pinned",
    "cost_usd_micros",
    "cost_is_partial",
    "last_preview",
    "updated_at",
    "closed_at",
)
# What a person can do about a turn that ended like this.
_AGAIN = (StopReason.ERROR, StopReason.CONTEXT_LIMIT)
_ON = (
    StopReason.CANCELLED,
    StopReason.TIMEOUT,
    StopReason.MAX_STEPS,
    StopReason.TOO_MANY_FAILURES,
    StopReason.BUDGET_EXCEEDED,
    StopReason.DENIED,
)


def visible_sessions(user: User) -> QuerySet[AgentSession]:
    """Top-level sessions, newest first, without their big columns."""
    return (
        AgentSession.objects.visible_to(user)
        .filter(parent_session=None)
        .only(*_LIST_COLUMNS)
        .order_by("-updated_at", "-pk")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionGroups:
    """The list page: each session stands in one group."""

    running: list[AgentSession]
    pinned: list[AgentSession]
    recent: list[AgentSession]

    @property
    def is_empty(self) -> bool:
        return not (self.running or self.pinned or self.recent)


def load_groups(user: User) -> SessionGroups:
    """The list's first page, in three queries."""
    sessions = visible_sessions(user)
    resting = sessions.exclude(status__in=ACTIVE_STATUSES)
    return SessionGroups(
        running=list(sessions.filter(status__in=ACTIVE_STATUSES)),
        pinned=list(resting.filter(pinned=True)),
        recent=list(resting_sessions(user)[:LIST_PAGE_SIZE]),
    )


def resting_sessions(user: User) -> QuerySet[AgentSession]:
    """Neither at work nor pinned; the list page shows them in pages."""
    resting = visible_sessions(user).exclude(status__in=ACTIVE_STATUSES)
    return resting.filter(pinned=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """Everything on a session's page that changes while it is open, but its items."""

    session: AgentSession
    mode_name: str
    can_operate: bool
    can_delete: bool
    is_scripted: bool
    run: Run | None
    queue_position: int | None
    queued: list[Message]
    pending: list[ApprovalCard]
    meter: ContextMeter | None
    adrift: list[ApprovalCard]
    """Pending approvals whose tool call stands nowhere on the page: it has no row yet,
    or is part of another version. They stand at the end."""
    family: Family
    parent: AgentSession | None
    """The session that started it, if this person may see that one."""
    task: Task | None
    ticket: Ticket | None
    """What it works on; for their owner only."""

    @property
    def model(self) -> str:
        """The model that answered, else the one that was asked for."""
        actual = self.run.model_actual if self.run else ""
        return actual or self.session.model

    @property
    def model_asked_for(self) -> str:
        """Where another one answered: the model that was asked for."""
        run = self.run
        if run is None or not (run.model_requested and run.model_actual):
            return ""
        is_same = is_same_model(run.model_requested, run.model_actual)
        return "" if is_same else run.model_requested

    @property
    def security_mode(self) -> str:
        """The session's own, and what its owner's limit leaves of it."""
        mode = SecurityMode(self.session.security_mode)
        ceiling = SecurityMode(self.session.owner.security_ceiling)
        if mode.rank > ceiling.rank:
            return f"{mode}, limited to {ceiling}"
        return mode.value

    @property
    def is_unjailed(self) -> bool:
        return self.run is not None and self.run.jailed is False

    @property
    def is_stopping(self) -> bool:
        run = self.run
        return (
            run is not None
            and run.stop_requested_at is not None
            and run.state in LIVE_STATES
        )

    @property
    def has_ended(self) -> bool:
        if self.session.is_sub_agent:  # the run is its host's
            return False
        return self.run is not None and self.run.state == RunState.FINISHED

    @property
    def outcome(self) -> str:
        status = self.session.status
        return status if status in ("error", "stopped") else "completed"

    @property
    def is_working(self) -> bool:
        return self.session.status == SessionStatus.RUNNING

    @property
    def first_pending_id(self) -> str:
        return self.pending[0].element_id if self.pending else ""

    @property
    def can_retry(self) -> bool:
        return self._ended_by(*_AGAIN)

    @property
    def can_continue(self) -> bool:
        return self._ended_by(*_ON)

    @property
    def is_context_full(self) -> bool:
        return self._ended_by(StopReason.CONTEXT_LIMIT)

    def _ended_by(self, *reasons: StopReason) -> bool:
        """Whether the shown branch's last turn did, and somebody may do about it."""
        run = self.run
        return (
            self.can_operate
            and not self.session.is_sub_agent
            and self.session.closed_at is None
            and run is not None
            and run.branch_id == self.session.active_branch_id
            and run.state == RunState.FINISHED
            and run.stop_reason in reasons
        )

    @property
    def duration_ms(self) -> int | None:
        return self.run.duration_ms if self.run else None


def load_page(session: AgentSession, user: User) -> SessionPage:
    """A constant number of queries; `session` must be fresh."""
    can_operate = may_answer(user, session)
    pending = _pending(session, user, can_operate=can_operate)
    placed = _placed(session, pending)
    family = load_family(session, user)
    run = _run_of(session)
    return SessionPage(
        session=session,
        mode_name=_mode_name(session),
        can_operate=can_operate,
        can_delete=session.owner_id == user.pk and not session.is_sub_agent,
        is_scripted=is_scripted(session),
        run=run,
        queue_position=queue_position(session.pk),
        queued=list(session.messages.queued().defer("rendered_html", "attachments")),
        pending=[*pending, *family.waiting],
        meter=load_meter(session, run),
        adrift=[card for card in pending if card.approval.tool_use_id not in placed],
        family=family,
        parent=_parent_of(session, user),
        task=session.task if session.owner_id == user.pk else None,
        ticket=session.ticket if session.owner_id == user.pk else None,
    )


def _run_of(session: AgentSession) -> Run | None:
    """The newest; of a sub-agent the turn that it is part of."""
    if not session.is_sub_agent:
        return session.runs.order_by("-created_at").first()
    call = Message.objects.filter(
        session_id=session.host_id,
        tool_use_id=session.parent_tool_use_id,
        role=MessageRole.TOOL_CALL,
    )
    return Run.objects.filter(pk__in=call.values("run_id")).first()


def _pending(
    session: AgentSession, user: User, *, can_operate: bool
) -> list[ApprovalCard]:
    requests = session.host.approvals.pending()
    if session.is_sub_agent:
        requests = requests.filter(calls_below(session))
    ordered = requests.order_by("created_at", "pk")
    return [ApprovalCard(approval, can_operate, viewer=user) for approval in ordered]


def _parent_of(session: AgentSession, user: User) -> AgentSession | None:
    if session.parent_session_id is None:
        return None
    visible = AgentSession.objects.visible_to(user)
    return visible.filter(pk=session.parent_session_id).first()


def _placed(session: AgentSession, pending: list[ApprovalCard]) -> set[str]:
    """Of the calls that wait, those that the page shows."""
    if not pending:
        return set()
    shown = Q()  # a sub-agent's page shows its host's rows of all branches
    if not session.is_sub_agent:
        shown = within(lineage(session.pk, session.active_branch_id))
    calls = Message.objects.filter(
        shown,
        session_id=session.host_id,
        role=MessageRole.TOOL_CALL,
        hidden=False,
        tool_use_id__in=[card.approval.tool_use_id for card in pending],
    )
    return set(calls.values_list("tool_use_id", flat=True))


def _mode_name(session: AgentSession) -> str:
    mine = Q(owner=None) | Q(owner_id=session.owner_id)
    modes = Mode.objects.filter(mine, slug=session.mode)
    name = modes.order_by(F("owner").asc(nulls_last=True)).values_list(
        "name", flat=True
    )
    return name.first() or session.mode


def fresh_session(session_id: UUID, user: User) -> AgentSession | None:
    """The session as it is now, if the person may (still) see it."""
    return (
        AgentSession.objects.visible_to(user)
        .filter(pk=session_id)
        .select_related("owner", "provider", "host_session")
        .first()
    )


def current_seq(session_id: UUID) -> int:
    """The seq of the session's newest event; 0 where the session is gone."""
    seqs = AgentSession.objects.filter(pk=session_id).values_list("last_seq", flat=True)
    return seqs.first() or 0
