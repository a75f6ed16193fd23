"""What people's agents remember."""

from __future__ import annotations

from django.contrib import admin

from agents.models import Memory

from .base import ReadOnlyAdmin


@admin.register(Memory)
class MemoryAdmin(ReadOnlyAdmin):
    list_display = ["text", "owner", "source_session", "updated_at"]
    list_select_related = ["owner", "source_session"]
    search_fields = ["text", "owner__username"]
