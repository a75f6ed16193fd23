"""The cost ledger."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from agents.models import CostEntry
from agents.rendering.figures import usd

from .base import ReadOnlyAdmin


@admin.register(CostEntry)
class CostAdmin(ReadOnlyAdmin):
    list_display = [
        "created_at",
        "user",
        "session",
        "model",
        "input_tokens",
        "output_tokens",
        "cost",
    ]
    list_filter = ["model", "created_at"]
    list_select_related = ["user", "session"]
    search_fields = ["=session__id", "session__name", "user__username", "=message_id"]
    ordering = ["-created_at"]
    exclude = ["usd_micros"]
    readonly_fields = ["cost"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[CostEntry]:
        related = ["provider", "user", "session", "run"]
        return super().get_queryset(request).select_related(*related)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "session__id__exact" or super().lookup_allowed(
            lookup, value, request
        )

    @admin.display(description="cost", ordering="usd_micros")
    def cost(self, entry: CostEntry) -> str:
        return usd(entry.usd_micros)
