"""Agent sessions: one agent at work for one person."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from agents.policy.modes import SecurityMode

from .fields import PublicIdModel, one_of
from .users import SECURITY_MODE_CHOICES, Effort, OnTimeout, User


class SessionStatus(models.TextChoices):
    IDLE = "idle", "Idle"
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    WAITING_APPROVAL = "waiting_approval", "Needs you"
    COMPLETED = "completed", "Completed"
    STOPPED = "stopped", "Stopped"
    ERROR = "error", "Error"


ACTIVE_STATUSES = (
    SessionStatus.QUEUED,
    SessionStatus.RUNNING,
    SessionStatus.WAITING_APPROVAL,
)


class SessionKind(models.TextChoices):
    CHAT = "chat", "Chat"
    SUB_AGENT = "sub-agent", "Sub-agent"
    INVOKED_AGENT = "invoked-agent", "Invoked agent"
    BROWSER_AGENT = "browser-agent", "Browser agent"
    VIEW_BUILDER = "view-builder", "App builder"
    SKILL_BUILDER = "skill-builder", "Skill builder"


class Network(models.TextChoices):
    NONE = "none", "No network"
    OPEN = "open", "Open network"


class AgentSessionQuerySet(models.QuerySet["AgentSession"]):
    def visible_to(self, user: User) -> AgentSessionQuerySet:
        """The person's own sessions, those shared with them, and their sub-agents."""
        return self.filter(_of(user, user.shares.values("session_id")))

    def operable_by(self, user: User) -> AgentSessionQuerySet:
        """Where the person may send, stop and decide."""
        if not user.may_start_agents:
            return self.none()
        shared = user.shares.filter(right=ShareRight.OPERATE)
        return self.filter(_of(user, shared.values("session_id")))

    def recent_first(self) -> AgentSessionQuerySet:
        return self.order_by(F("updated_at").desc())


def _of(user: User, shared: models.QuerySet[Any, Any]) -> Q:
    """A sub-agent is part of its host, so whoever may see that may see it."""
    return Q(owner=user) | Q(pk__in=shared) | Q(host_session__in=shared)


class ShareRight(models.TextChoices):
    VIEW = "view", "May look"
    OPERATE = "operate", "May send and decide"


class AgentSession(PublicIdModel):
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sessions")
    name = models.CharField(max_length=200)
    status = models.CharField(
        max_length=16, choices=SessionStatus.choices, default=SessionStatus.IDLE
    )
    kind = models.CharField(
        max_length=14, choices=SessionKind.choices, default=SessionKind.CHAT
    )
    mode = models.CharField(max_length=64, default="agent")
    model = models.CharField(max_length=200, blank=True, default="")
    model_set_by = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    model_set_at = models.DateTimeField(null=True, blank=True)
    provider = models.ForeignKey(  # NULL: the default provider of the moment
        "agents.Provider", null=True, blank=True, on_delete=models.SET_NULL
    )
    system_prompt = models.TextField(blank=True, default="")
    effort = models.CharField(
        max_length=6, choices=Effort.choices, default=Effort.MEDIUM
    )
    max_steps = models.PositiveIntegerField(null=True, blank=True)
    max_budget_usd_micros = models.PositiveBigIntegerField(null=True, blank=True)
    run_budget_usd_micros = models.PositiveBigIntegerField(null=True, blank=True)
    """What one of its turns may cost, as a person set it; raises stand on `Budget`."""
    temperature = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
    )
    """Set by the gateway in each request to the model; NULL: the model's own."""
    security_mode = models.CharField(
        max_length=10, choices=SECURITY_MODE_CHOICES, default=SecurityMode.ASK.value
    )
    allowed_tools = models.JSONField(null=True, blank=True)
    """The tools of the mode as last resolved; NULL: every offered tool."""
    mcp_servers_off = models.JSONField(default=list, blank=True)
    """Ids of the MCP servers that this session is not given."""
    on_timeout = models.CharField(
        max_length=4, choices=OnTimeout.choices, default=OnTimeout.PARK
    )
    network = models.CharField(
        max_length=4, choices=Network.choices, default=Network.NONE
    )
    task = models.ForeignKey(
        "agents.Task",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="sessions",
    )
    ticket = models.ForeignKey(
        "agents.Ticket",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="sessions",
    )
    cwd = models.CharField(max_length=1000, blank=True, default="")
    owns_cwd = models.BooleanField(default=True)
    """Whether `cwd` is a folder of our own making, deleted with the session."""
    worktree_of = models.ForeignKey(
        "agents.ListedFolder",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    """The listed repository whose git worktree `cwd` is, if it is one."""
    active_branch = models.ForeignKey(
        "agents.MessageBranch",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    parent_session = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="children"
    )
    parent_tool_use_id = models.CharField(max_length=200, blank=True, default="")
    """The call in the parent session that this one answers."""
    host_session = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="guests"
    )
    """Of a sub-agent: the session that runs it, in whose rows its words stand."""
    agent_id = models.CharField(max_length=200, blank=True, default="")
    """The CLI's id of a sub-agent."""
    depth = models.PositiveSmallIntegerField(default=0)
    name_is_automatic = models.BooleanField(default=True)
    """Whether a generated title may still replace the name."""
    pinned = models.BooleanField(default=False)
    queue_paused = models.BooleanField(default=False)
    # Counters: handed out by `F() + 1` updates, so two writers never agree on one.
    last_seq = models.PositiveBigIntegerField(default=0)
    last_message_seq = models.PositiveBigIntegerField(default=0)
    # Cached totals; the truth is the ledger and the messages.
    cost_usd_micros = models.PositiveBigIntegerField(default=0)
    cost_is_partial = models.BooleanField(default=False)
    """Whether some call's price is unknown, so that the cost is a lower bound."""
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    message_count = models.PositiveIntegerField(default=0)
    last_preview = models.CharField(max_length=120, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)
    closed_at = models.DateTimeField(null=True, blank=True)
    is_resumed = models.BooleanField(default=False)
    """Whether it was opened again and nothing has run since: then it is stopped."""

    objects = AgentSessionQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-updated_at"], name="session_by_owner"),
            models.Index(fields=["status"], name="session_by_status"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["parent_session", "parent_tool_use_id"],
                condition=~Q(parent_tool_use_id=""),
                name="session_one_per_call",
            ),
            one_of("status", SessionStatus),
            one_of("kind", SessionKind),
            one_of("effort", Effort),
            one_of("network", Network),
            one_of("on_timeout", OnTimeout),
            one_of("security_mode", SecurityMode),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE_STATUSES

    @property
    def is_sub_agent(self) -> bool:
        """Whether it has no rows and no runs of its own, but those of its host."""
        return self.host_session_id is not None

    @property
    def host_id(self) -> UUID:
        """The session that has its rows and events: the host's, else its own."""
        return self.host_session_id or self.pk

    @property
    def host(self) -> AgentSession:
        return self.host_session or self

    @property
    def shown_seq(self) -> int:
        """The seq of the newest event of what its page shows, as it was read."""
        return self.host.last_seq
