"""The append-only log of each session's events; token deltas are not rows."""

from __future__ import annotations

from django.db import models

from .sessions import AgentSession


class SessionEvent(models.Model):
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="events"
    )
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=40)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["seq"]
        constraints = [
            models.UniqueConstraint(fields=["session", "seq"], name="event_seq_unique")
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"
