"""Tool groups: the name and icon that a run of tool calls was given."""

from __future__ import annotations

from django.db import models

from .fields import PublicIdModel
from .sessions import AgentSession


class ToolGroupMeta(PublicIdModel):
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="tool_groups"
    )
    first_message = models.ForeignKey(
        "agents.Message", on_delete=models.CASCADE, related_name="+"
    )
    """The group's first tool call; what identifies the group."""
    name = models.CharField(max_length=80)
    svg = models.TextField(blank=True, default="")
    """Sanitised, 24x24, at most 400 characters; empty: a stock icon."""
    is_refined = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "first_message"], name="tool_group_once"
            )
        ]

    def __str__(self) -> str:
        return self.name
