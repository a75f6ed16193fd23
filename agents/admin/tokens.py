"""API tokens: whose they are, what they may do, when they were used."""

from __future__ import annotations

from django.contrib import admin

from agents.models import ApiToken

from .base import ReadOnlyAdmin


@admin.register(ApiToken)
class TokenAdmin(ReadOnlyAdmin):
    list_display = [
        "name",
        "prefix",
        "user",
        "scopes",
        "expires_at",
        "last_used_at",
        "created_at",
    ]
    list_filter = ["created_at", "last_used_at"]
    list_select_related = ["user"]
    search_fields = ["name", "prefix", "user__username"]
    exclude = ["token_sha256"]
    ordering = ["-created_at"]
