"""Audit entries."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from agents.models import AuditEntry

from .base import ReadOnlyAdmin, pretty_json


@admin.register(AuditEntry)
class AuditAdmin(ReadOnlyAdmin):
    list_display = [
        "created_at",
        "actor",
        "action",
        "target_type",
        "target_id",
        "address",
    ]
    list_filter = ["action", "target_type", "created_at"]
    list_select_related = ["actor"]
    search_fields = ["actor__username", "action", "=target_id", "=address"]
    ordering = ["-created_at"]
    exclude = ["data"]
    readonly_fields = ["laid_out"]

    @admin.display(description="data")
    def laid_out(self, entry: AuditEntry) -> SafeString:
        return pretty_json(entry.data)
