"""Branches: lines of conversation within a session.

A fork point is the message being *replaced*: the branch shows everything of its
ancestors strictly before it, then its own.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

from .fields import PublicIdModel
from .sessions import AgentSession
from .users import User


class MessageBranchQuerySet(models.QuerySet["MessageBranch"]):
    def visible_to(self, user: User) -> MessageBranchQuerySet:
        return self.filter(session__in=AgentSession.objects.visible_to(user))


class MessageBranch(PublicIdModel):
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="branches"
    )
    parent_branch = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="children"
    )
    fork_point_message = models.ForeignKey(
        "agents.Message",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="forks",
    )
    # Chosen by us and committed before the CLI starts, so that a crash in the
    # first turn loses nothing.
    sdk_session_id = models.UUIDField(default=uuid.uuid4)
    # The transcript entry that the last good turn ended with.
    sdk_resume_uuid = models.UUIDField(null=True, blank=True)
    # Where the model's memory of this branch comes from: another conversation up to
    # one of its entries. NULL: from nothing. Copied at the branch's first turn.
    sdk_fork_session_id = models.UUIDField(null=True, blank=True)
    sdk_fork_uuid = models.UUIDField(null=True, blank=True)
    context_tokens = models.PositiveIntegerField(null=True, blank=True)
    """What the model's last call on this branch held; NULL until there was one."""
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = MessageBranchQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        indexes = [models.Index(fields=["sdk_session_id"], name="branch_by_sdk")]

    def __str__(self) -> str:
        return f"Branch {self.pk}"
