"""The log of session events."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agents.models import SessionEvent

from .base import ReadOnlyAdmin, pretty_json


@admin.register(SessionEvent)
class EventAdmin(ReadOnlyAdmin):
    is_private = True
    list_display = ["seq", "session", "type", "created_at"]
    list_filter = ["type", "created_at"]
    list_select_related = ["session"]
    search_fields = ["=session__id", "session__name", "type"]
    ordering = ["-created_at", "-seq"]
    fields = ["session", "seq", "type", "laid_out", "created_at"]
    readonly_fields = ["laid_out"]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "session__id__exact" or super().lookup_allowed(
            lookup, value, request
        )

    @admin.display(description="data")
    def laid_out(self, event: SessionEvent) -> SafeString:
        return pretty_json(event.data)
