"""Tasks that people and their agents keep, and tickets elsewhere that they serve."""

from __future__ import annotations

from django.core.validators import URLValidator
from django.db import models
from django.utils import timezone

from .fields import PublicIdModel, one_of
from .users import User

TITLE_CHARACTERS = 200
DESCRIPTION_CHARACTERS = 20_000


class TaskStatus(models.TextChoices):
    TODO = "todo", "To do"
    IN_PROGRESS = "in_progress", "In progress"
    BLOCKED = "blocked", "Blocked"
    DONE = "done", "Done"
    CANCELLED = "cancelled", "Cancelled"


OPEN_STATUSES = (TaskStatus.TODO, TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED)


class TaskPriority(models.TextChoices):
    LOW = "low", "Low"
    NORMAL = "normal", "Normal"
    HIGH = "high", "High"
    URGENT = "urgent", "Urgent"


class TicketQuerySet(models.QuerySet["Ticket"]):
    def visible_to(self, user: User) -> TicketQuerySet:
        return self.filter(owner=user)


class Ticket(PublicIdModel):
    """What a tracker elsewhere calls this work; only what people copied from there."""

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tickets")
    key = models.CharField(max_length=60)
    title = models.CharField(max_length=TITLE_CHARACTERS)
    url = models.CharField(
        max_length=1000,
        blank=True,
        default="",
        validators=[URLValidator(schemes=["http", "https"])],
    )
    status = models.CharField(max_length=60, blank=True, default="")
    """In the tracker's own words."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = TicketQuerySet.as_manager()

    class Meta:
        ordering = ["key"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "key"], name="ticket_key_once")
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.title}"


class TaskQuerySet(models.QuerySet["Task"]):
    def visible_to(self, user: User) -> TaskQuerySet:
        return self.filter(owner=user)

    def open(self) -> TaskQuerySet:
        return self.filter(status__in=OPEN_STATUSES)


class Task(PublicIdModel):
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tasks")
    title = models.CharField(max_length=TITLE_CHARACTERS)
    description = models.TextField(
        blank=True, default="", max_length=DESCRIPTION_CHARACTERS
    )
    status = models.CharField(
        max_length=11, choices=TaskStatus.choices, default=TaskStatus.TODO
    )
    priority = models.CharField(
        max_length=6, choices=TaskPriority.choices, default=TaskPriority.NORMAL
    )
    ticket = models.ForeignKey(
        Ticket, null=True, blank=True, on_delete=models.SET_NULL, related_name="tasks"
    )
    summary = models.TextField(
        blank=True, default="", max_length=DESCRIPTION_CHARACTERS
    )
    """What the agent said that it did, when it completed the task."""
    created_by_session = models.ForeignKey(
        "agents.AgentSession",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="tasks_created",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)
    completed_at = models.DateTimeField(null=True, blank=True)

    objects = TaskQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at"]
        indexes = [
            models.Index(fields=["owner", "status"], name="task_by_owner"),
        ]
        constraints = [one_of("status", TaskStatus), one_of("priority", TaskPriority)]

    def __str__(self) -> str:
        return self.title

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_STATUSES
