"""Approval requests: a tool call, or the agent's question, that waits for a person."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from .budgets import SITE_WIDE
from .fields import PublicIdModel, one_of
from .runs import Run
from .sessions import AgentSession
from .users import User


class ApprovalStatus(models.TextChoices):
    PENDING = "pending", "Waiting"
    APPROVED = "approved", "Approved"
    DENIED = "denied", "Denied"
    EXPIRED = "expired", "Expired"
    CANCELLED = "cancelled", "Cancelled"


class ApprovalKind(models.TextChoices):
    APPROVAL = "approval", "Approval"
    QUESTION = "question", "Question"
    PLAN = "plan", "Plan"
    BUDGET = "budget", "Budget"


class ApprovalScope(models.TextChoices):
    ONCE = "once", "This call"
    SESSION = "session", "This session"
    ALWAYS = "always", "Always"


class ApprovalRequestQuerySet(models.QuerySet["ApprovalRequest"]):
    def visible_to(self, user: User) -> ApprovalRequestQuerySet:
        visible = Q(session__in=AgentSession.objects.visible_to(user))
        return self.filter(visible | _raisable_by(user))

    def answerable_by(self, user: User) -> ApprovalRequestQuerySet:
        """By who may operate the session; owners of the site also raise budgets."""
        operable = Q(session__in=AgentSession.objects.operable_by(user))
        return self.filter(operable | _raisable_by(user))

    def about_calls(self) -> ApprovalRequestQuerySet:
        """Those that policy has a say in; one about a budget is about money."""
        return self.exclude(kind=ApprovalKind.BUDGET)

    def pending(self) -> ApprovalRequestQuerySet:
        return self.filter(status=ApprovalStatus.PENDING, expires_at__gt=timezone.now())

    def unheard(self) -> ApprovalRequestQuerySet:
        """Decided by people, and not delivered to the agent."""
        decided = (ApprovalStatus.APPROVED, ApprovalStatus.DENIED)
        return self.filter(status__in=decided, consumed_at=None)


def _raisable_by(user: User) -> Q:
    """Requests for the budgets that only owners raise, whoever's session it is."""
    if not user.is_owner:
        return Q(pk__in=())
    return Q(kind=ApprovalKind.BUDGET, tool_input__scope__in=[*SITE_WIDE])


class ApprovalRequest(PublicIdModel):
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="approvals"
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="approvals")
    kind = models.CharField(
        max_length=8, choices=ApprovalKind.choices, default=ApprovalKind.APPROVAL
    )
    tool_use_id = models.CharField(max_length=200)
    agent_id = models.CharField(max_length=200, blank=True, default="")
    tool_name = models.CharField(max_length=200)
    tool_input = models.JSONField(default=dict)
    input_sha256 = models.CharField(max_length=64)
    reason = models.TextField(blank=True, default="")
    rule_id = models.CharField(max_length=64, blank=True, default="")
    status = models.CharField(
        max_length=9, choices=ApprovalStatus.choices, default=ApprovalStatus.PENDING
    )
    decided_by = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    channel = models.CharField(max_length=20, blank=True, default="")
    """How the decision came in: "page", "inbox", "api", "email", "rule", "system"."""
    message = models.TextField(blank=True, default="")
    updated_input = models.JSONField(null=True, blank=True)
    scope = models.CharField(
        max_length=7, choices=ApprovalScope.choices, default=ApprovalScope.ONCE
    )
    stops_run = models.BooleanField(default=False)
    track_analytics = models.BooleanField(default=True)
    """False for calls that are too many to be counted, a browser's single steps."""
    consumed_at = models.DateTimeField(null=True, blank=True)
    hot_until = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ApprovalRequestQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        indexes = [
            models.Index(
                fields=["session"],
                condition=Q(status="pending"),
                name="approval_pending",
            )
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "tool_use_id"], name="approval_one_per_tool_use"
            ),
            one_of("status", ApprovalStatus),
            one_of("scope", ApprovalScope),
            one_of("kind", ApprovalKind),
        ]

    def __str__(self) -> str:
        return f"{self.tool_name} ({self.status})"

    @property
    def is_of_site_wide_budget(self) -> bool:
        is_budget = self.kind == ApprovalKind.BUDGET
        return is_budget and self.tool_input.get("scope") in SITE_WIDE

    def may_be_raised_by(self, user: User) -> bool:
        return user.is_owner or not self.is_of_site_wide_budget

    @property
    def is_pending(self) -> bool:
        return (
            self.status == ApprovalStatus.PENDING and self.expires_at > timezone.now()
        )
