"""Tasks and tickets of everybody."""

from __future__ import annotations

from django.contrib import admin

from agents.models import Task, Ticket

from .base import ReadOnlyAdmin


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    list_display = ["title", "owner", "status", "priority", "ticket", "updated_at"]
    list_filter = ["status", "priority", "updated_at"]
    list_select_related = ["owner", "ticket"]
    search_fields = ["title", "owner__username"]


@admin.register(Ticket)
class TicketAdmin(ReadOnlyAdmin):
    list_display = ["key", "title", "owner", "status", "updated_at"]
    list_select_related = ["owner"]
    search_fields = ["key", "title", "owner__username"]
