"""Invites: one-time links that make an account.

The first-run setup link is an invite for an owner that nobody sent.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from .fields import PublicIdModel, one_of
from .users import Role, User


class InviteQuerySet(models.QuerySet["Invite"]):
    def open(self) -> InviteQuerySet:
        """Links that work: unused, in time, and sent by somebody who still may."""
        by_owner = Q(created_by__role=Role.OWNER, created_by__is_active=True)
        return self.filter(
            Q(created_by=None) | by_owner,
            accepted_at=None,
            expires_at__gt=timezone.now(),
        )


class Invite(PublicIdModel):
    token_sha256 = models.CharField(max_length=64, unique=True)
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    created_by = models.ForeignKey(  # NULL: the first-run setup link
        User, null=True, blank=True, on_delete=models.CASCADE, related_name="invites"
    )
    accepted_by = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    accepted_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = InviteQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        constraints = [one_of("role", Role)]

    def __str__(self) -> str:
        return f"Invite for a {self.role}"
