"""Runs: turns of the engine, and how each ended."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from agents.models import Run
from agents.rendering.figures import usd

from .base import ReadOnlyAdmin


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "session",
        "state",
        "stop_reason",
        "error_class",
        "steps",
        "cost",
        "created_at",
    ]
    list_filter = ["state", "stop_reason", "kind", "jailed", "error_class"]
    list_select_related = ["session"]
    search_fields = ["=id", "=session__id", "session__name", "error_text"]
    ordering = ["-created_at"]
    exclude = ["cost_usd_micros"]
    readonly_fields = ["cost"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        related = ["session", "branch", "trigger_message"]
        return super().get_queryset(request).select_related(*related)

    @admin.display(description="cost", ordering="cost_usd_micros")
    def cost(self, run: Run) -> str:
        return usd(run.cost_usd_micros)
