"""Messages, by session."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agents.models import Message
from agents.rendering.text import preview

from .base import ReadOnlyAdmin, pretty_json, pretty_text


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    is_private = True
    list_display = ["seq", "session", "role", "tool_name", "beginning", "created_at"]
    list_filter = ["role", "outcome", "is_error", "is_interrupted", "created_at"]
    list_select_related = ["session"]
    search_fields = ["=session__id", "session__name", "tool_name", "=tool_use_id"]
    search_help_text = "Session (id or name), tool or tool use id"
    ordering = ["-created_at", "-seq"]
    fields = [
        "session",
        "branch",
        "run",
        "seq",
        "role",
        "author",
        "whole_text",
        "whole_content",
        "tool_name",
        "tool_use_id",
        "parent_tool_use_id",
        "outcome",
        "elapsed_ms",
        "model",
        "hidden",
        "is_streaming",
        "is_interrupted",
        "is_error",
        "files",
        "queued_at",
        "delivered_at",
        "created_at",
        "updated_at",
    ]
    readonly_fields = ["whole_text", "whole_content", "files"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        related = ["session", "branch", "run", "author"]
        return super().get_queryset(request).select_related(*related)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "session__id__exact" or super().lookup_allowed(
            lookup, value, request
        )

    @admin.display(description="text")
    def beginning(self, message: Message) -> str:
        return preview(message.text, 80)

    @admin.display(description="text")
    def whole_text(self, message: Message) -> SafeString:
        return pretty_text(message.text)

    @admin.display(description="content")
    def whole_content(self, message: Message) -> SafeString:
        return pretty_json(message.content)

    @admin.display(description="attachments")
    def files(self, message: Message) -> SafeString:
        return pretty_json(message.attachments)
