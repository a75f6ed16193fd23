"""What has been spent of each budget, always as a sum over the ledger.

A turn is bound by its own budget, by those of its session and of the sessions that this
one works for, by its person's, and by the site's; each counts what sub-agents and
invoked sessions spend.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from agents.models import AgentSession, Budget, CostEntry, Run
from agents.models.budgets import SITE_WIDE, BudgetPeriod, BudgetScope
from agents.policy.limits import BudgetLevel, budget_level, next_limit, percent_of
from agents.rendering.figures import usd

_WHOSE = {
    BudgetScope.RUN: "this turn",
    BudgetScope.SESSION: "this session",
    BudgetScope.USER: "this person",
    BudgetScope.SITE: "the whole site",
}
_WHEN = {BudgetPeriod.DAY: " today", BudgetPeriod.MONTH: " this month"}
SUMS = {
    "known": Sum("usd_micros", default=0),
    "unpriced": Count("pk", filter=Q(usd_micros=None)),
}

Rows = dict[tuple[str, UUID | None], Budget]
"""Budgets by scope and by what they are about."""


@dataclass(frozen=True, slots=True)
class Spent:
    """A sum over the ledger."""

    usd_micros: int = 0
    is_partial: bool = False
    """Whether calls of an unknown price are among it, which cost more than this."""

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.usd_micros + other.usd_micros, self.is_partial or other.is_partial
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One budget with what has been spent of it; `target` is its row's foreign key."""

    scope: BudgetScope
    target: dict[str, Any]
    base_usd_micros: int
    spent: Spent
    raised_usd_micros: int = 0
    period: str = BudgetPeriod.EVER
    since: datetime | None = None

    @property
    def spent_usd_micros(self) -> int:
        return self.spent.usd_micros

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
        known = f"{usd(self.spent_usd_micros)} of {usd(self.limit_usd_micros)}"
        return f"at least {known}" if self.spent.is_partial else known


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
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

    def account(self, spent: Spent | None = None) -> Account:
        """`spent` is given by who has added up already."""
        raised = self.row.raised_usd_micros if self.row and self._is_current else 0
        return Account(
            scope=self.scope,
            target=self.target,
            base_usd_micros=self.base_usd_micros,
            spent=_spent(self) if spent is None else spent,
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
    return [limit.account() for limit in limits_of(session, run)]


def account_of(budget: Budget, *, spent: Spent | None = None) -> Account | None:
    """The account behind a row; None where its limit was taken away.

    `spent` is given by who has added up already.
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
    limit = Limit(scope=scope, target=target, base_usd_micros=base, row=budget)
    return limit.account(spent)


def limits_of(session: AgentSession, run: Run | None) -> list[Limit]:
    """What binds the session and its turn, the narrowest first; nothing added up."""
    line = _line_above(session)
    rows = _rows(line, run)
    limits = [
        _limit(BudgetScope.SESSION, rows, each.max_budget_usd_micros, session=each)
        for each in line
    ]
    if run is not None:
        own = session.run_budget_usd_micros
        limits.insert(0, _limit(BudgetScope.RUN, rows, own, run=run))
    limits.append(_limit(BudgetScope.USER, rows, None, user_id=session.owner_id))
    limits.append(_limit(BudgetScope.SITE, rows, None))
    return [limit for limit in limits if limit is not None]


def _limit(
    scope: BudgetScope, rows: Rows, set_to: int | None, **target: Any
) -> Limit | None:
    """None where nothing is set: on the session, or in a row of people or the site."""
    key = next((getattr(each, "pk", each) for each in target.values()), None)
    row = rows.get((scope, key))
    base = row.limit_usd_micros if row and scope in SITE_WIDE else set_to
    if base is None:
        return None
    return Limit(scope=scope, target=target, base_usd_micros=base, row=row)


def _line_above(session: AgentSession) -> list[AgentSession]:
    """The session, and those that it works for."""
    line = [session]
    while (parent := line[-1].parent_session) is not None:
        line.append(parent)
    return line


def _rows(line: list[AgentSession], run: Run | None) -> Rows:
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


def _spent(limit: Limit) -> Spent:
    match limit.scope:
        case BudgetScope.RUN:
            run = limit.target["run"]
            own = _spent_in(CostEntry.objects.filter(run=run))
            return own + _spent_below(run.session_id, run.created_at)
        case BudgetScope.SESSION:
            session = limit.target["session"]
            itself = AgentSession.objects.filter(pk=session.pk)
            return _totals(itself) + _spent_below(session.pk)
    entries = CostEntry.objects.all()
    if limit.since is not None:
        entries = entries.filter(created_at__gte=limit.since)
    return _spent_in(entries.filter(**limit.target))


def _spent_in(entries: QuerySet[CostEntry]) -> Spent:
    sums = entries.aggregate(**SUMS)
    return Spent(sums["known"], bool(sums["unpriced"]))


def _totals(found: QuerySet[AgentSession]) -> Spent:
    rows = found.values_list("cost_usd_micros", "cost_is_partial")
    return sum((Spent(*row) for row in rows), Spent())


def _spent_below(session_id: UUID, since: datetime | None = None) -> Spent:
    """Of the sessions that this one has asked, and those below; sub-agents are in its
    own total already."""
    asked = AgentSession.objects.filter(host_session=None)
    level = asked.filter(parent_session=session_id)
    if since is not None:
        level = level.filter(created_at__gte=since)
    total = Spent()
    while ids := list(level.values_list("pk", flat=True)):
        total += _totals(asked.filter(pk__in=ids))
        level = asked.filter(parent_session__in=ids)
    return total
