"""Permission rules: standing decisions, each visible and revocable."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from .approvals import ApprovalRequest
from .fields import PublicIdModel, one_of
from .sessions import AgentSession
from .users import User


class RuleScope(models.TextChoices):
    SESSION = "session", "One session"
    MODE = "mode", "One mode"
    USER = "user", "All my sessions"
    SITE = "site", "Everybody"


class RuleEffect(models.TextChoices):
    ALLOW = "allow", "Allow"
    ASK = "ask", "Ask"
    DENY = "deny", "Deny"


class PermissionRuleQuerySet(models.QuerySet["PermissionRule"]):
    def visible_to(self, user: User) -> PermissionRuleQuerySet:
        """The person's own rules, the site's, and those others left on their agents."""
        return self.filter(
            Q(owner=user) | Q(scope=RuleScope.SITE) | Q(session__owner=user)
        )

    def revocable_by(self, user: User) -> PermissionRuleQuerySet:
        """Of those, what the person may end: the site's only as an owner."""
        found = self.visible_to(user)
        return found if user.is_owner else found.exclude(scope=RuleScope.SITE)

    def in_force(self) -> PermissionRuleQuerySet:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()))

    def applying_to(self, session: AgentSession) -> PermissionRuleQuerySet:
        """Every rule in force that may speak about this session's calls."""
        own = Q(owner_id=session.owner_id)
        return self.in_force().filter(
            Q(scope=RuleScope.SITE)
            | own & Q(scope=RuleScope.USER)
            | own & Q(scope=RuleScope.MODE, mode=session.mode)
            | Q(scope=RuleScope.SESSION, session=session)
        )


class PermissionRule(PublicIdModel):
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="rules")
    scope = models.CharField(max_length=7, choices=RuleScope.choices)
    session = models.ForeignKey(
        AgentSession,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="rules",
    )
    mode = models.CharField(max_length=64, blank=True, default="")
    tool = models.CharField(max_length=200)
    matcher = models.CharField(max_length=1000, blank=True, default="")
    effect = models.CharField(max_length=5, choices=RuleEffect.choices)
    expires_at = models.DateTimeField(null=True, blank=True)
    hits = models.PositiveIntegerField(default=0)
    last_hit_at = models.DateTimeField(null=True, blank=True)
    created_from = models.ForeignKey(
        ApprovalRequest,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PermissionRuleQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        constraints = [one_of("scope", RuleScope), one_of("effect", RuleEffect)]

    def __str__(self) -> str:
        return f"{self.effect} {self.notation}"

    @property
    def notation(self) -> str:
        """As people write it: `Bash(git status:*)`, or the tool alone."""
        return f"{self.tool}({self.matcher})" if self.matcher else self.tool

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()
