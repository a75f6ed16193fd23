"""Budgets: the limits of people and of the site, and what was granted on top."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from agents.models import Budget
from agents.rendering.figures import usd

from .base import ReadOnlyAdmin


@admin.register(Budget)
class BudgetAdmin(ReadOnlyAdmin):
    list_display = ["scope", "user", "session", "run", "limit", "raised", "warned_at"]
    list_filter = ["scope", "period"]
    list_select_related = ["user", "session", "run"]
    search_fields = ["user__username", "=session__id", "session__name", "=run__id"]
    ordering = ["scope", "pk"]
    exclude = ["limit_usd_micros", "raised_usd_micros"]
    readonly_fields = ["limit", "raised"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Budget]:
        return super().get_queryset(request).select_related("user", "session", "run")

    @admin.display(description="limit", ordering="limit_usd_micros")
    def limit(self, budget: Budget) -> str:
        if budget.limit_usd_micros is None:
            return "as the session's settings say"
        return usd(budget.limit_usd_micros)

    @admin.display(description="raised by", ordering="raised_usd_micros")
    def raised(self, budget: Budget) -> str:
        return usd(budget.raised_usd_micros)
