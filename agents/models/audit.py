"""Audit entries: who did what that matters for trust; append-only."""

from __future__ import annotations

from django.db import models

from .users import User


class AuditEntry(models.Model):
    actor = models.ForeignKey(  # NULL: the system, or nobody signed in
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    action = models.CharField(max_length=60)
    """Past tense, dotted: "login.failed", "approval.decided", "rule.created"."""
    target_type = models.CharField(max_length=40, blank=True, default="")
    target_id = models.CharField(max_length=64, blank=True, default="")
    address = models.CharField(max_length=45, blank=True, default="")
    data = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["action", "-created_at"], name="audit_by_action")
        ]

    def __str__(self) -> str:
        return self.action
