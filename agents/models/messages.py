"""Messages: everything said and done in a session, one row a block."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from .branches import MessageBranch
from .fields import PublicIdModel, one_of
from .sessions import AgentSession
from .users import User


class MessageRole(models.TextChoices):
    USER = "user", "User"
    ASSISTANT = "assistant", "Assistant"
    THINKING = "thinking", "Thinking"
    TOOL_CALL = "tool_call", "Tool call"
    TOOL_RESULT = "tool_result", "Tool result"
    SYSTEM = "system", "Notice"


class ToolOutcome(models.TextChoices):
    """How a tool call ended; stands on its tool_result row."""

    OK = "ok", "Done"
    ERROR = "error", "Failed"
    DENIED = "denied", "Denied"
    CANCELLED = "cancelled", "Cancelled"


class MessageQuerySet(models.QuerySet["Message"]):
    def visible_to(self, user: User) -> MessageQuerySet:
        return self.filter(session__in=AgentSession.objects.visible_to(user))

    def queued(self) -> MessageQuerySet:
        """Typed while the agent worked, and not delivered yet; next first."""
        return self.filter(queued_at__isnull=False, delivered_at=None).order_by(
            "-is_urgent", "queue_position", "queued_at", "seq"
        )

    def delivered(self) -> MessageQuerySet:
        """All that is part of the conversation, so what waits in the queue is not.

        Its `seq` says when it was typed, and becomes its place only at its delivery.
        """
        return self.exclude(queued_at__isnull=False, delivered_at=None)


class Message(PublicIdModel):
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="messages"
    )
    branch = models.ForeignKey(
        MessageBranch, on_delete=models.CASCADE, related_name="messages"
    )
    run = models.ForeignKey(
        "agents.Run",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="messages",
    )
    author = models.ForeignKey(  # who typed it, where a person did
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    seq = models.PositiveBigIntegerField()
    role = models.CharField(max_length=11, choices=MessageRole.choices)
    text = models.TextField(blank=True, default="")
    content = models.JSONField(default=dict, blank=True)
    """tool_call: {"input": …}, what a person changed in it {"original_input": …,
    "edited_by": …} too; tool_result: {"structured": …, "images": […]};
    user: {"attached": the names of what came with it, by kind};
    system: {"kind": "error" | "retry" | "stalled" | …, and that kind's facts}."""
    rendered_html = models.TextField(blank=True, default="")
    tool_name = models.CharField(max_length=200, blank=True, default="")
    tool_use_id = models.CharField(max_length=200, blank=True, default="")
    parent_tool_use_id = models.CharField(max_length=200, blank=True, default="")
    outcome = models.CharField(
        max_length=9, choices=ToolOutcome.choices, blank=True, default=""
    )
    elapsed_ms = models.PositiveIntegerField(null=True, blank=True)
    model = models.CharField(max_length=200, blank=True, default="")
    sdk_uuid = models.UUIDField(null=True, blank=True)
    client_message_id = models.UUIDField(null=True, blank=True)
    hidden = models.BooleanField(default=False)
    is_streaming = models.BooleanField(default=False)
    is_interrupted = models.BooleanField(default=False)
    is_error = models.BooleanField(default=False)
    attachments = models.JSONField(default=dict, blank=True)
    """{"context_paths": [path, a folder's with a slash at its end],
    "skills": [{"id", "name", "content"}], "forced_tools": [name],
    "images": [rendering.images.KeptImage]}"""
    queued_at = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    queue_position = models.PositiveIntegerField(default=0)
    """Where a person put it in the queue; smaller first, ties by time."""
    is_urgent = models.BooleanField(default=False)
    """Delivered next, even while the queue is paused ("Send now", an edit)."""
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["seq"]
        indexes = [
            models.Index(fields=["branch", "seq"], name="message_by_branch"),
            models.Index(
                fields=["session", "tool_use_id"],
                condition=~Q(tool_use_id=""),
                name="message_by_tool_use",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "seq"], name="message_seq_unique"
            ),
            models.UniqueConstraint(
                fields=["session", "client_message_id"],
                condition=Q(client_message_id__isnull=False),
                name="message_idempotent",
            ),
            models.UniqueConstraint(
                fields=["session", "branch", "tool_use_id", "role"],
                condition=~Q(tool_use_id=""),
                name="message_one_per_tool_use",
            ),
            one_of("role", MessageRole),
            one_of("outcome", ToolOutcome, blank=True),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.seq}"
