"""People: accounts, roles, and what each of them prefers."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.validators import ASCIIUsernameValidator
from django.db import models
from django.db.models.functions import Lower

from agents.policy.modes import SecurityMode

from .fields import PublicIdModel, one_of

SECURITY_MODE_CHOICES = [(mode.value, mode.value) for mode in SecurityMode]


class Role(models.TextChoices):
    OWNER = "owner", "Owner"
    MEMBER = "member", "Member"
    VIEWER = "viewer", "Viewer"


class Theme(models.TextChoices):
    AUTO = "auto", "Like my system"
    LIGHT = "light", "Light"
    DARK = "dark", "Dark"


class Effort(models.TextChoices):
    LOW = "low", "Low"
    MEDIUM = "medium", "Medium"
    HIGH = "high", "High"
    MAX = "max", "Max"


class OnTimeout(models.TextChoices):
    PARK = "park", "Keep the question open"
    DENY = "deny", "Deny the call"


class User(AbstractUser, PublicIdModel):
    # No two names may look alike: ASCII only, and case makes no difference (Meta).
    username = models.CharField(
        max_length=150,
        unique=True,
        validators=[ASCIIUsernameValidator()],
        error_messages={"unique": "Somebody has this username already."},
    )
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    # No session of this person may use a wider security mode than this.
    security_ceiling = models.CharField(
        max_length=10, choices=SECURITY_MODE_CHOICES, default=SecurityMode.FULL.value
    )
    allowed_models = models.TextField(blank=True, default="")
    """One name or pattern (`claude-haiku-*`) a line; empty: every model."""

    class Meta(AbstractUser.Meta):
        constraints = [
            one_of("role", Role),
            one_of("security_ceiling", SecurityMode),
            models.UniqueConstraint(
                Lower("username"),
                name="user_username_in_any_case",
                violation_error_message="Somebody has this username already.",
            ),
        ]

    @property
    def is_owner(self) -> bool:
        return self.role == Role.OWNER

    @property
    def may_start_agents(self) -> bool:
        return self.role != Role.VIEWER


class Preferences(models.Model):
    user = models.OneToOneField(
        User, on_delete=models.CASCADE, related_name="preferences"
    )
    theme = models.CharField(max_length=5, choices=Theme.choices, default=Theme.AUTO)
    timezone = models.CharField(max_length=64, blank=True, default="")
    default_model = models.CharField(max_length=200, blank=True, default="")
    default_mode = models.CharField(max_length=64, default="agent")
    default_effort = models.CharField(
        max_length=6, choices=Effort.choices, default=Effort.MEDIUM
    )
    run_budget_usd_micros = models.PositiveBigIntegerField(null=True, blank=True)
    """What one turn of a new agent may cost."""
    default_security_mode = models.CharField(
        max_length=10, choices=SECURITY_MODE_CHOICES, default=SecurityMode.ASK.value
    )
    default_folder = models.ForeignKey(
        "agents.ListedFolder", null=True, blank=True, on_delete=models.SET_NULL
    )
    system_prompt = models.TextField(blank=True, default="")
    ask_for_everything = models.BooleanField(default=False)
    on_timeout = models.CharField(
        max_length=4, choices=OnTimeout.choices, default=OnTimeout.PARK
    )
    tool_policies = models.JSONField(default=dict, blank=True)
    """{tool name: "always_allow" | "ask" | "deny"}; no entry means the default."""
    notify_on_approval = models.BooleanField(default=True)
    notify_on_completion = models.BooleanField(default=False)

    class Meta:
        verbose_name_plural = "preferences"
        constraints = [
            one_of("theme", Theme),
            one_of("default_effort", Effort),
            one_of("on_timeout", OnTimeout),
            one_of("default_security_mode", SecurityMode),
        ]

    def __str__(self) -> str:
        return f"Preferences of {self.user_id}"
