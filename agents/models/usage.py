"""The cost ledger: one entry per answered model call, whoever asked for it."""

from __future__ import annotations

from django.db import models

from .providers import Provider
from .runs import Run
from .sessions import AgentSession
from .users import User


class CostEntry(models.Model):
    provider = models.ForeignKey(
        Provider, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    message_id = models.CharField(max_length=200)
    """The provider's own id of the answer: what makes a call count once in its session.

    Another provider may give another session the same one.
    """
    model = models.CharField(max_length=200)
    user = models.ForeignKey(
        User, null=True, on_delete=models.SET_NULL, related_name="cost_entries"
    )
    session = models.ForeignKey(
        AgentSession, null=True, on_delete=models.SET_NULL, related_name="cost_entries"
    )
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    agent_id = models.CharField(max_length=200, blank=True, default="")
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cache_read_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    usd_micros = models.PositiveBigIntegerField(null=True, blank=True)
    """NULL: the model's price is unknown, which is not the same as free."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at"]
        verbose_name_plural = "cost entries"
        indexes = [
            models.Index(fields=["session", "created_at"], name="cost_by_session"),
            models.Index(fields=["user", "created_at"], name="cost_by_user"),
            models.Index(fields=["created_at"], name="cost_by_time"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "message_id", "model"], name="cost_once_per_answer"
            )
        ]

    def __str__(self) -> str:
        return f"{self.model} {self.message_id}"
