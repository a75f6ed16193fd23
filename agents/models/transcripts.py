"""The SDK's own transcript, kept by us so that any worker can resume any session."""

from __future__ import annotations

from django.db import models


class TranscriptEntry(models.Model):
    project_key = models.CharField(max_length=1000)
    sdk_session_id = models.CharField(max_length=64)
    subpath = models.CharField(max_length=300, blank=True, default="")
    uuid = models.CharField(max_length=64, blank=True, default="")
    type = models.CharField(max_length=40, blank=True, default="")
    # ASCII JSON text, not JSONField: PostgreSQL's jsonb refuses NUL characters.
    entry = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "transcript entries"
        indexes = [
            models.Index(
                fields=["sdk_session_id", "subpath", "id"], name="transcript_in_order"
            )
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["project_key", "sdk_session_id", "subpath", "uuid"],
                condition=~models.Q(uuid=""),
                name="transcript_entry_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.uuid}"
