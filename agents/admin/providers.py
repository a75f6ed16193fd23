"""Providers, without their keys; they are edited on the pages."""

from __future__ import annotations

from django.contrib import admin

from agents.models import Provider

from .base import ReadOnlyAdmin


@admin.register(Provider)
class ProviderAdmin(ReadOnlyAdmin):
    list_display = ["name", "kind", "owner", "key", "is_enabled", "tested_at"]
    list_filter = ["kind", "is_enabled"]
    list_select_related = ["owner"]
    search_fields = ["name", "owner__username", "base_url"]
    # Named one by one, so that no later column shows a secret by default.
    fields = [
        "name",
        "kind",
        "owner",
        "base_url",
        "key",
        "model_prefix",
        "bare",
        "is_enabled",
        "models_found",
        "models_typed",
        "tested_at",
        "test_error",
        "created_at",
    ]
    readonly_fields = ["key"]

    @admin.display(description="key", boolean=True)
    def key(self, provider: Provider) -> bool:
        return provider.has_key
