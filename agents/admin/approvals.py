"""Approval requests and what was decided."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agents.models import ApprovalRequest

from .base import ReadOnlyAdmin, pretty_json


@admin.register(ApprovalRequest)
class ApprovalAdmin(ReadOnlyAdmin):
    is_private = True
    list_display = [
        "tool_name",
        "session",
        "kind",
        "status",
        "decided_by",
        "channel",
        "created_at",
    ]
    list_filter = ["status", "kind", "channel", "scope", "created_at"]
    list_select_related = ["session", "decided_by"]
    search_fields = ["=session__id", "session__name", "tool_name", "=tool_use_id"]
    ordering = ["-created_at"]
    exclude = ["tool_input", "updated_input"]
    readonly_fields = ["asked_input", "decided_input"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApprovalRequest]:
        related = ["session", "run", "decided_by"]
        return super().get_queryset(request).select_related(*related)

    @admin.display(description="input")
    def asked_input(self, approval: ApprovalRequest) -> SafeString:
        return pretty_json(approval.tool_input)

    @admin.display(description="input as decided")
    def decided_input(self, approval: ApprovalRequest) -> SafeString | str:
        changed = approval.updated_input
        return "unchanged" if changed is None else pretty_json(changed)
