"""Budgets as the settings show them: each with what is spent of it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.utils import timezone

from agents.domain.spending import SUMS, Account, Spent, account_of, period_start
from agents.models import Budget, CostEntry, User
from agents.models.budgets import BudgetPeriod, BudgetScope


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonBudget:
    person: User
    account: Account | None


def find_budget(user: User | None) -> Budget | None:
    """A person's row, or without a person the site's."""
    scope = BudgetScope.SITE if user is None else BudgetScope.USER
    return Budget.objects.filter(scope=scope, user=user).first()


def load_account(user: User | None) -> Account | None:
    """None where no limit is set."""
    budget = find_budget(user)
    return account_of(budget) if budget is not None else None


def load_people_budgets() -> list[PersonBudget]:
    """Everybody who may sign in; a constant number of queries."""
    people = User.objects.filter(is_active=True).order_by("username")
    rows = {row.user_id: row for row in Budget.objects.filter(scope=BudgetScope.USER)}
    spent = {period: _spent_by_person(period) for period in _periods(rows)}
    return [
        PersonBudget(person=person, account=_account(rows.get(person.pk), spent))
        for person in people
    ]


def _periods(rows: dict[UUID | None, Budget]) -> set[str]:
    return {row.period for row in rows.values()}


def _spent_by_person(period: str) -> dict[UUID | None, Spent]:
    entries = CostEntry.objects.all()
    since = period_start(BudgetPeriod(period), timezone.now())
    if since is not None:
        entries = entries.filter(created_at__gte=since)
    sums = entries.order_by().values_list("user_id").annotate(**SUMS)
    return {user_id: Spent(known, bool(unpriced)) for user_id, known, unpriced in sums}


def _account(
    row: Budget | None, spent: dict[str, dict[UUID | None, Spent]]
) -> Account | None:
    if row is None:
        return None
    return account_of(row, spent=spent[row.period].get(row.user_id, Spent()))
