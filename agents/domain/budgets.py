"""Budgets: what has been spent of each, whom that concerns, and raising them.

Spending is always a sum over the ledger. A turn is bound by its own budget, by those of
its session and of the sessions that this one works for, by its person's, and by the
site's; each counts what sub-agents and invoked sessions spend.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, Sum
from django.utils import timezone

from agents.events.bus import publish_on_commit
from agents.events.vocabulary import BudgetWarned
from agents.models import AgentSession, Budget, CostEntry, Run, User
from agents.models.budgets import BudgetPeriod, BudgetScope
from agents.policy.limits import (
    WARN_PERCENT,
    BudgetLevel,
    budget_level,
    next_limit,
    percent_of,
)
from agents.rendering.figures import usd

from . import audit, notices

_WHOSE = {
    BudgetScope.RUN: "this turn",
    BudgetScope.SESSION: "this session",
    BudgetScope.USER: "this person",
    BudgetScope.SITE: "the whole site",
}
_WHEN = {BudgetPeriod.DAY: " today", BudgetPeriod.MONTH: " this month"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One budget with what has been spent of it; `target` is its row's foreign key."""

    scope: BudgetScope
    target: dict[str, Any]
    base_usd_micros: int
    spent_usd_micros: int
    raised_usd_micros: int = 0
    period: str = BudgetPeriod.EVER
    since: datetime | None = None

    @property
    def limit_usd_micros(self) -> int:
        return self.base_usd_micros + self.raised_usd_micros

    @property
    def percent(self) -> int:
        return percent_of(self.spent_usd_micros, self.limit_usd_micros)

    @property
    def level(self) -> BudgetLevel:
        return budget_level(self.spent_usd_micros, self.limit_usd_micros)

    @property
    def raises_to_usd_micros(self) -> int:
        return next_limit(
            self.base_usd_micros, self.limit_usd_micros, self.spent_usd_micros
        )

    @property
    def period_label(self) -> str:
        return str(BudgetPeriod(self.period).label).lower()

    @property
    def whose(self) -> str:
        return f"{_WHOSE[self.scope]}{_WHEN.get(BudgetPeriod(self.period), '')}"

    @property
    def figures(self) -> str:
        return f"{usd(self.spent_usd_micros)} of {usd(self.limit_usd_micros)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    """A budget that binds, before anything was added up."""

    scope: BudgetScope
    target: dict[str, Any]
    base_usd_micros: int
    row: Budget | None

    @property
    def period(self) -> str:
        return self.row.period if self.row else BudgetPeriod.EVER

    @property
    def since(self) -> datetime | None:
        return period_start(self.period, timezone.now())

    @property
    def _is_current(self) -> bool:
        return self.row is not None and self.row.counted_from == self.since

    @property
    def is_warned(self) -> bool:
        is_set = self.row is not None and self.row.warned_at is not None
        return self._is_current and is_set

    def account(self, spent_usd_micros: int) -> Account:
        raised = self.row.raised_usd_micros if self.row and self._is_current else 0
        return Account(
            scope=self.scope,
            target=self.target,
            base_usd_micros=self.base_usd_micros,
            spent_usd_micros=spent_usd_micros,
            raised_usd_micros=raised,
            period=self.period,
            since=self.since,
        )


def period_start(period: str, now: datetime) -> datetime | None:
    """When the period that `now` is in began, in UTC; None for one without an end."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case BudgetPeriod.DAY:
            return day
        case BudgetPeriod.MONTH:
            return day.replace(day=1)
    return None


def accounts_of(session: AgentSession, run: Run | None) -> list[Account]:
    """Every budget that binds the session and its turn, the narrowest first."""
    return [_account(limit) for limit in _limits_of(session, run)]


def account_of(
    budget: Budget, *, spent_usd_micros: int | None = None
) -> Account | None:
    """The account behind a row; None where its limit was taken away.

    `spent_usd_micros` is given by who has added up already.
    """
    target: dict[str, Any] = {}
    base = budget.limit_usd_micros
    if budget.session is not None:
        target, base = {"session": budget.session}, budget.session.max_budget_usd_micros
    elif budget.run is not None:
        target, base = {"run": budget.run}, budget.run.session.run_budget_usd_micros
    elif budget.user_id is not None:
        target = {"user_id": budget.user_id}
    if base is None:
        return None
    scope = BudgetScope(budget.scope)
    limit = _Limit(scope=scope, target=target, base_usd_micros=base, row=budget)
    if spent_usd_micros is not None:
        return limit.account(spent_usd_micros)
    return _account(limit)


def find_used_up(session_id: UUID, *, is_side: bool = False) -> Account | None:
    """The narrowest budget of which nothing is left, if there is one.

    What stands beside the turns, such as a title, is no part of a turn's budget.
    """
    session = AgentSession.objects.filter(pk=session_id).first()
    if session is None:
        return None
    run = None if is_side else session.runs.unfinished().first()
    accounts = (_account(limit) for limit in _limits_of(session, run))
    used_up = (each for each in accounts if each.level == BudgetLevel.USED_UP)
    return next(used_up, None)


def refusal_of_call(session_id: UUID, *, is_side: bool = False) -> str:
    """Why a model call of the session may not begin; empty if it may."""
    account = find_used_up(session_id, is_side=is_side)
    return sentence_of(account) if account is not None else ""


def sentence_of(account: Account) -> str:
    return f"The budget of {account.whose} is used up: {account.figures}."


def watch(session: AgentSession, run: Run | None) -> None:
    """Warn of each budget that is nearly used up, once for each limit.

    The caller holds the session's lock, in the transaction that entered a cost. The
    word is said where the money was spent, also of a budget that is another's.
    """
    for limit in _limits_of(session, run):
        if limit.is_warned:
            continue
        account = _account(limit)
        if account.level != BudgetLevel.FREE and _mark_warned(account):
            _warn(session, run, account)


def _warn(session: AgentSession, run: Run | None, account: Account) -> None:
    publish_on_commit(
        BudgetWarned(
            session_id=session.pk,
            run_id=run.pk if run else None,
            scope=account.scope,
            spent_usd_micros=account.spent_usd_micros,
            limit_usd_micros=account.limit_usd_micros,
            percent=account.percent,
            threshold=WARN_PERCENT,
        )
    )
    if run is not None and Run.objects.unfinished().filter(pk=run.pk).exists():
        text = (
            f"{account.percent} % of the budget of {account.whose} is used:"
            f" {account.figures}. When nothing is left, the agent stops and asks."
        )
        notices.add_notice(run, "budget", text, scope=account.scope)


def row_of(account: Account) -> Budget:
    """The budget's row; of sessions and turns it is made when first needed."""
    row, _ = Budget.objects.get_or_create(scope=account.scope, **account.target)
    return row


def _mark_warned(account: Account) -> bool:
    """Returns: whether this caller is the one who warns."""
    row = row_of(account)
    now = timezone.now()
    if row.counted_from != account.since:
        stale = Budget.objects.filter(pk=row.pk, counted_from=row.counted_from)
        return bool(
            stale.update(counted_from=account.since, raised_usd_micros=0, warned_at=now)
        )
    unwarned = Budget.objects.filter(pk=row.pk, warned_at=None)
    return bool(unwarned.update(warned_at=now))


def raise_to(budget_id: UUID, limit_usd_micros: int, *, actor: User) -> None:
    """Grant what is needed for this limit; one that is wider by now stays."""
    budget = Budget.objects.select_for_update().filter(pk=budget_id).first()
    account = account_of(budget) if budget is not None else None
    if budget is None or account is None or account.limit_usd_micros > limit_usd_micros:
        return
    budget.raised_usd_micros = max(limit_usd_micros - account.base_usd_micros, 0)
    budget.warned_at = None
    budget.counted_from = account.since
    budget.save(update_fields=["raised_usd_micros", "warned_at", "counted_from"])
    audit.record(
        "budget.raised",
        actor=actor,
        target=budget,
        scope=budget.scope,
        limit_usd_micros=limit_usd_micros,
    )


def forget_raises(session: AgentSession) -> None:
    """A person has set the session's limits anew; what was granted before is void."""
    Budget.objects.filter(Q(session=session) | Q(run__session=session)).delete()


@transaction.atomic
def set_limit(
    limit_usd_micros: int | None, period: str, *, actor: User, user: User | None = None
) -> None:
    """Set a person's budget, or without a person the site's; None takes it away."""
    scope = BudgetScope.USER if user is not None else BudgetScope.SITE
    known = Budget.objects.filter(scope=scope, user=user).first()
    before = (known.limit_usd_micros, known.period) if known else (None, period)
    if before == (limit_usd_micros, period):
        return
    Budget.objects.update_or_create(
        scope=scope,
        user=user,
        defaults={
            "limit_usd_micros": limit_usd_micros,
            "period": period,
            "raised_usd_micros": 0,
            "warned_at": None,
            "counted_from": None,
        },
    )
    audit.record(
        "budget.changed",
        actor=actor,
        target=user,
        scope=scope,
        period=period,
        limit_usd_micros=limit_usd_micros,
    )


def _limits_of(session: AgentSession, run: Run | None) -> list[_Limit]:
    line = _line_above(session)
    rows = _rows(line, run)
    limits = []
    if run is not None and session.run_budget_usd_micros is not None:
        limits.append(
            _Limit(
                scope=BudgetScope.RUN,
                target={"run": run},
                base_usd_micros=session.run_budget_usd_micros,
                row=rows.get(("run", run.pk)),
            )
        )
    limits += [
        _Limit(
            scope=BudgetScope.SESSION,
            target={"session": each},
            base_usd_micros=each.max_budget_usd_micros,
            row=rows.get(("session", each.pk)),
        )
        for each in line
        if each.max_budget_usd_micros is not None
    ]
    wide: tuple[tuple[BudgetScope, dict[str, Any], tuple[str, UUID | None]], ...] = (
        (BudgetScope.USER, {"user_id": session.owner_id}, ("user", session.owner_id)),
        (BudgetScope.SITE, {}, ("site", None)),
    )
    for scope, target, key in wide:
        row = rows.get(key)
        if row is not None and row.limit_usd_micros is not None:
            limits.append(
                _Limit(
                    scope=scope,
                    target=target,
                    base_usd_micros=row.limit_usd_micros,
                    row=row,
                )
            )
    return limits


def _line_above(session: AgentSession) -> list[AgentSession]:
    """The session, and those that it works for."""
    line = [session]
    while (parent := line[-1].parent_session) is not None:
        line.append(parent)
    return line


def _rows(
    line: list[AgentSession], run: Run | None
) -> dict[tuple[str, UUID | None], Budget]:
    binding = (
        Q(scope=BudgetScope.SITE)
        | Q(user=line[0].owner_id)
        | Q(session__in=line)
        | (Q(run=run) if run is not None else Q(pk=None))
    )
    return {
        (row.scope, row.run_id or row.session_id or row.user_id): row
        for row in Budget.objects.filter(binding)
    }


def _account(limit: _Limit) -> Account:
    return limit.account(_spent(limit))


def _spent(limit: _Limit) -> int:
    match limit.scope:
        case BudgetScope.RUN:
            run = limit.target["run"]
            return _sum(CostEntry.objects.filter(run=run)) + _cost_below(
                run.session_id, run.created_at
            )
        case BudgetScope.SESSION:
            session = limit.target["session"]
            own = AgentSession.objects.filter(pk=session.pk)
            cost = own.values_list("cost_usd_micros", flat=True).first() or 0
            return cost + _cost_below(session.pk)
    entries = CostEntry.objects.all()
    if limit.since is not None:
        entries = entries.filter(created_at__gte=limit.since)
    return _sum(entries.filter(**limit.target))


def _sum(entries: Any) -> int:
    return entries.aggregate(total=Sum("usd_micros"))["total"] or 0


def _cost_below(session_id: UUID, since: datetime | None = None) -> int:
    """Of the sessions that this one has asked, and those below; sub-agents are in its
    own total already."""
    asked = AgentSession.objects.filter(host_session=None)
    level = asked.filter(parent_session=session_id)
    if since is not None:
        level = level.filter(created_at__gte=since)
    total = 0
    while rows := list(level.values_list("pk", "cost_usd_micros")):
        total += sum(cost for _, cost in rows)
        level = asked.filter(parent_session__in=[pk for pk, _ in rows])
    return total
