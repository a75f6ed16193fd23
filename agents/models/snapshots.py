"""Snapshots: the workspace as it was after a turn, a commit in a git folder of ours."""

from __future__ import annotations

from django.db import models

from .branches import MessageBranch
from .fields import PublicIdModel
from .runs import Run
from .sessions import AgentSession
from .users import User


class SnapshotQuerySet(models.QuerySet["Snapshot"]):
    def visible_to(self, user: User) -> SnapshotQuerySet:
        return self.filter(session__in=AgentSession.objects.visible_to(user))


class Snapshot(PublicIdModel):
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="snapshots"
    )
    branch = models.ForeignKey(
        MessageBranch, on_delete=models.CASCADE, related_name="snapshots"
    )
    run = models.ForeignKey(  # NULL: taken before the first turn
        Run, null=True, blank=True, on_delete=models.CASCADE, related_name="snapshots"
    )
    message_seq = models.PositiveBigIntegerField()
    """The session's last message when it was taken: the state "as of" that message."""
    commit = models.CharField(max_length=64)
    parent_commit = models.CharField(max_length=64, blank=True, default="")
    files_changed = models.PositiveIntegerField(default=0)
    skipped = models.JSONField(default=list, blank=True)
    """Paths left out because of the size limits."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SnapshotQuerySet.as_manager()

    class Meta:
        ordering = ["message_seq", "created_at"]
        indexes = [
            models.Index(fields=["branch", "message_seq"], name="snapshot_by_branch")
        ]

    def __str__(self) -> str:
        return f"Snapshot {self.commit[:10]}"
