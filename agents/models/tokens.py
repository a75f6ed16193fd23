"""API tokens: what a program shows instead of a password; only hashes are stored."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils import timezone

from .fields import PublicIdModel
from .users import User


class TokenScope(models.TextChoices):
    READ = "read", "Read: sessions, messages, events and what waits"
    WRITE = "write", "Write: start agents, send messages, stop them"
    DECIDE = "decide", "Decide: approve and deny tool calls, answer questions"


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def visible_to(self, user: User) -> ApiTokenQuerySet:
        """A person's own, whatever their role."""
        return self.filter(user=user)

    def working(self) -> ApiTokenQuerySet:
        """In time, and of somebody who may sign in."""
        return self.filter(
            Q(expires_at=None) | Q(expires_at__gt=timezone.now()),
            user__is_active=True,
        )


class ApiToken(PublicIdModel):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    token_sha256 = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=12)
    """How the token begins, for its owner to tell one from another."""
    scopes = models.JSONField(default=list)
    """Values of `TokenScope`; one does not include another."""
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def is_expired(self) -> bool:
        return _is_past(self.expires_at)

    @property
    def scope_labels(self) -> list[str]:
        """One word each, in the order in which they are offered."""
        return [scope.name.title() for scope in TokenScope if scope in self.scopes]


def _is_past(moment: datetime | None) -> bool:
    return moment is not None and moment <= timezone.now()
