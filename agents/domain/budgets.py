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
from django.db.models import Count, Q, QuerySet, Sum
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

    def account(self, spent: Spent) -> Account:
        raised = self.row.raised_usd_micros if self.row and self._is_current else 0
        return Account(
            scope=self.scope,
            target=self.target,
            base_usd_micros=self.base_usd_micros,
            spent=spent,
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
    limit = _Limit(scope=scope, target=target, base_usd_micros=base, row=budget)
    return limit.account(spent) if spent is not None else _account(limit)


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
    if run is not None and _is_on(run):
        text = (
            f"{account.percent} % of the budget of {account.whose} is used:"
            f" {account.figures}. When nothing is left, the agent stops and asks."
        )
        notices.add_notice(run, "budget", text, scope=account.scope)


def tell_unpriced(session: AgentSession, run: Run | None, model: str) -> None:
    """Say once in a turn that its budgets can't count what the model costs.

    The caller holds the session's lock.
    """
    if run is None or not _is_on(run) or not _limits_of(session, run):
        return
    if not session.messages.filter(run=run, content__kind="unpriced").exists():
        text = f"No price is known for {model}, so budgets don’t count its calls."
        notices.add_notice(run, "unpriced", text, model=model)


def _is_on(run: Run) -> bool:
    return Run.objects.unfinished().filter(pk=run.pk).exists()


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


def _spent(limit: _Limit) -> Spent:
    match limit.scope:
        case BudgetScope.RUN:
            run = limit.target["run"]
            own = spent_in(CostEntry.objects.filter(run=run))
            return own + _spent_below(run.session_id, run.created_at)
        case BudgetScope.SESSION:
            session = limit.target["session"]
            itself = AgentSession.objects.filter(pk=session.pk)
            return _totals(itself) + _spent_below(session.pk)
    entries = CostEntry.objects.all()
    if limit.since is not None:
        entries = entries.filter(created_at__gte=limit.since)
    return spent_in(entries.filter(**limit.target))


SUMS = {
    "known": Sum("usd_micros", default=0),
    "unpriced": Count("pk", filter=Q(usd_micros=None)),
}


def spent_in(entries: QuerySet[CostEntry]) -> Spent:
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
