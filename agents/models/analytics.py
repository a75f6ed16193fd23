"""Analytics events: what happened, kept in this database and sent nowhere."""

from __future__ import annotations

from django.db import models

from .sessions import AgentSession
from .users import User


class AnalyticsEvent(models.Model):
    type = models.CharField(max_length=40)
    """Dotted, past tense: "session.started", "tool.executed", "approval.resolved"."""
    user = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    session = models.ForeignKey(
        AgentSession, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    data = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at"]
        indexes = [
            models.Index(fields=["type", "created_at"], name="analytics_by_type")
        ]

    def __str__(self) -> str:
        return self.type
