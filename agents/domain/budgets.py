"""Budgets: warning of them, refusing what goes beyond, raising and setting them."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.events.bus import publish_on_commit
from agents.events.vocabulary import BudgetWarned
from agents.models import AgentSession, Budget, Run, User
from agents.models.budgets import BudgetScope
from agents.policy.limits import WARN_PERCENT, BudgetLevel

from . import audit, notices
from .spending import Account, account_of, limits_of


def find_used_up(session_id: UUID, *, is_side: bool = False) -> Account | None:
    """The narrowest budget of which nothing is left, if there is one.

    What stands beside the turns, such as a title, is no part of a turn's budget.
    """
    session = AgentSession.objects.filter(pk=session_id).first()
    if session is None:
        return None
    run = None if is_side else session.runs.unfinished().first()
    accounts = (limit.account() for limit in limits_of(session, run))
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
    for limit in limits_of(session, run):
        if limit.is_warned:
            continue
        account = limit.account()
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
        kind, text = _words(account)
        notices.add_notice(run, kind, text, scope=account.scope)


def _words(account: Account) -> tuple[str, str]:
    if account.level == BudgetLevel.USED_UP:
        next_time = "Before its next call the agent stops and asks."
        return "budget_used_up", f"{sentence_of(account)} {next_time}"
    return "budget", (
        f"{account.percent} % of the budget of {account.whose} is used:"
        f" {account.figures}. When nothing is left, the agent stops and asks."
    )


def tell_unpriced(session: AgentSession, run: Run | None, model: str) -> None:
    """Say once in a turn that its budgets can't count what the model costs.

    The caller holds the session's lock.
    """
    if run is None or not _is_on(run) or not limits_of(session, run):
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
