"""The SDK's own transcripts, as the CLI reads them back."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agents.models import TranscriptEntry

from .base import ReadOnlyAdmin, pretty_json_text


@admin.register(TranscriptEntry)
class TranscriptAdmin(ReadOnlyAdmin):
    is_private = True
    list_display = ["id", "sdk_session_id", "subpath", "type", "uuid", "created_at"]
    list_filter = ["type", "created_at"]
    search_fields = ["=sdk_session_id", "=uuid"]
    search_help_text = "The SDK’s session id, or an entry’s uuid"
    ordering = ["-id"]
    exclude = ["entry"]
    readonly_fields = ["laid_out"]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "sdk_session_id__in" or super().lookup_allowed(
            lookup, value, request
        )

    @admin.display(description="entry")
    def laid_out(self, entry: TranscriptEntry) -> SafeString:
        return pretty_json_text(entry.entry)
