"""Budgets: how much a turn, a session, a person or the whole site may cost.

What a session and its turns may cost are settings of the session; their rows here come
into being with the first warning or raise. Those of people and of the site also hold
the limit itself.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from .fields import PublicIdModel, one_of
from .runs import Run
from .sessions import AgentSession
from .users import User


class BudgetScope(models.TextChoices):
    RUN = "run", "turn"
    SESSION = "session", "session"
    USER = "user", "person"
    SITE = "site", "site"


class BudgetPeriod(models.TextChoices):
    EVER = "ever", "In all"
    MONTH = "month", "Each month"
    DAY = "day", "Each day"


SITE_WIDE = (BudgetScope.USER, BudgetScope.SITE)
"""Budgets that only an owner of the site sets and raises."""


class Budget(PublicIdModel):
    scope = models.CharField(max_length=7, choices=BudgetScope.choices)
    user = models.OneToOneField(
        User, null=True, blank=True, on_delete=models.CASCADE, related_name="budget"
    )
    session = models.OneToOneField(
        AgentSession,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="budget",
    )
    run = models.OneToOneField(
        Run, null=True, blank=True, on_delete=models.CASCADE, related_name="budget"
    )
    limit_usd_micros = models.PositiveBigIntegerField(null=True, blank=True)
    """NULL for sessions and turns, whose settings say it."""
    period = models.CharField(
        max_length=5, choices=BudgetPeriod.choices, default=BudgetPeriod.EVER
    )
    raised_usd_micros = models.PositiveBigIntegerField(default=0)
    """What people have granted on top of the limit, in `counted_from`'s period."""
    warned_at = models.DateTimeField(null=True, blank=True)
    counted_from = models.DateTimeField(null=True, blank=True)
    """The beginning of the period that `raised_usd_micros` and `warned_at` are of."""

    class Meta:
        constraints = [
            one_of("scope", BudgetScope),
            one_of("period", BudgetPeriod),
            models.UniqueConstraint(
                fields=["scope"], condition=Q(scope="site"), name="budget_one_of_site"
            ),
            models.CheckConstraint(
                condition=(
                    Q(scope="site", user=None, session=None, run=None)
                    | Q(scope="user", user__isnull=False, session=None, run=None)
                    | Q(scope="session", user=None, session__isnull=False, run=None)
                    | Q(scope="run", user=None, session=None, run__isnull=False)
                ),
                name="budget_of_its_scope",
            ),
        ]

    def __str__(self) -> str:
        return f"Budget of the {self.get_scope_display()}"
