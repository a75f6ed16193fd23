"""What a person's agents are to remember: short facts, never instructions."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from .fields import PublicIdModel
from .sessions import AgentSession
from .users import User

MEMORY_CHARACTERS = 500


class MemoryQuerySet(models.QuerySet["Memory"]):
    def visible_to(self, user: User) -> MemoryQuerySet:
        return self.filter(owner=user)


class Memory(PublicIdModel):
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memories")
    text = models.CharField(max_length=MEMORY_CHARACTERS)
    source_session = models.ForeignKey(
        AgentSession,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="memories",
    )
    """Whose agent saved it; NULL: the person did, or the session is gone."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = MemoryQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at", "-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "text"], name="memory_once")
        ]

    def __str__(self) -> str:
        return self.text
