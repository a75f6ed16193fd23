"""Runs: one turn of the engine, owned by one worker at a time."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from .branches import MessageBranch
from .fields import PublicIdModel, one_of
from .sessions import AgentSession
from .users import User


class RunState(models.TextChoices):
    QUEUED = "queued", "Queued"
    STARTING = "starting", "Starting"
    RUNNING = "running", "Running"
    PARKED = "parked", "Parked"
    FINISHED = "finished", "Finished"


UNFINISHED_STATES = (
    RunState.QUEUED,
    RunState.STARTING,
    RunState.RUNNING,
    RunState.PARKED,
)
LIVE_STATES = (RunState.STARTING, RunState.RUNNING)


class RunKind(models.TextChoices):
    PROMPT = "prompt", "A message"
    RETRY = "retry", "The same message again"
    RESUME = "resume", "Going on after a decision"
    COMPACT = "compact", "A summary of the conversation"


class StopReason(models.TextChoices):
    CANCELLED = "cancelled", "Stopped"
    PARKED = "parked", "Waiting for a decision"
    TIMEOUT = "timeout", "Out of time"
    BUDGET_EXCEEDED = "budget_exceeded", "Budget used up"
    MAX_STEPS = "max_steps", "Step limit reached"
    TOO_MANY_FAILURES = "too_many_failures", "Too many failures"
    DENIED = "denied", "Denied and stopped"
    CONTEXT_LIMIT = "context_limit", "Conversation too long"
    ERROR = "error", "Error"
    COMPLETE_TASK = "complete_task", "Task completed"
    NO_TOOL_CALLS = "no_tool_calls", "Finished"


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, user: User) -> RunQuerySet:
        return self.filter(session__in=AgentSession.objects.visible_to(user))

    def unfinished(self) -> RunQuerySet:
        return self.filter(state__in=UNFINISHED_STATES)

    def live(self) -> RunQuerySet:
        """Owned by a worker right now."""
        return self.filter(state__in=LIVE_STATES)

    def still_of(self, run: Run) -> RunQuerySet:
        """`run` itself, unless it ended or changed hands since it was read."""
        return self.unfinished().filter(pk=run.pk, fencing=run.fencing)


class Run(PublicIdModel):
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="runs"
    )
    branch = models.ForeignKey(
        MessageBranch, on_delete=models.CASCADE, related_name="runs"
    )
    trigger_message = models.ForeignKey(
        "agents.Message", on_delete=models.CASCADE, related_name="runs"
    )
    kind = models.CharField(
        max_length=7, choices=RunKind.choices, default=RunKind.PROMPT
    )
    state = models.CharField(
        max_length=8, choices=RunState.choices, default=RunState.QUEUED
    )
    stop_reason = models.CharField(
        max_length=17, choices=StopReason.choices, blank=True, default=""
    )
    success = models.BooleanField(null=True, blank=True)
    deferred_tool_use_id = models.CharField(max_length=200, blank=True, default="")
    """The call that was put aside when the run was parked; the CLI takes it up."""
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    lease_owner = models.CharField(max_length=100, blank=True, default="")
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    # Grows whenever the run changes hands; who has an older number has lost it.
    fencing = models.PositiveIntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    steps = models.PositiveIntegerField(default=0)
    max_steps = models.PositiveIntegerField(null=True, blank=True)
    """How many it may take, as it was when it began; NULL until then."""
    worked_ms = models.PositiveBigIntegerField(default=0)
    """How long it was at work before it was put aside, waiting left out."""
    cost_usd_micros = models.PositiveBigIntegerField(default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cache_read_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    model_requested = models.CharField(max_length=200, blank=True, default="")
    model_actual = models.CharField(max_length=200, blank=True, default="")
    error_class = models.CharField(max_length=40, blank=True, default="")
    error_text = models.TextField(blank=True, default="")
    jailed = models.BooleanField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        indexes = [
            models.Index(fields=["session", "created_at"], name="run_by_session"),
            models.Index(
                fields=["created_at"],
                condition=~Q(state=RunState.FINISHED),
                name="run_unfinished",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["session"],
                condition=~Q(state=RunState.FINISHED),
                name="run_one_unfinished_per_session",
            ),
            one_of("state", RunState),
            one_of("kind", RunKind),
            one_of("stop_reason", StopReason, blank=True),
        ]

    def __str__(self) -> str:
        return f"Run {self.pk}"

    @property
    def duration_ms(self) -> int | None:
        """None until it ended; nothing where the clock was set back meanwhile."""
        if self.started_at is None or self.finished_at is None:
            return None
        return max(0, int((self.finished_at - self.started_at).total_seconds() * 1000))
