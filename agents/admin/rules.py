"""Permission rules: the standing decisions."""

from __future__ import annotations

from django.contrib import admin

from agents.models import PermissionRule

from .base import ReadOnlyAdmin


@admin.register(PermissionRule)
class RuleAdmin(ReadOnlyAdmin):
    list_display = [
        "tool",
        "matcher",
        "effect",
        "scope",
        "owner",
        "hits",
        "expires_at",
        "created_at",
    ]
    list_filter = ["effect", "scope", "created_at"]
    list_select_related = ["owner"]
    search_fields = ["tool", "matcher", "owner__username"]
    ordering = ["-created_at"]
