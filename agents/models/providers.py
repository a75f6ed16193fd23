"""Providers: where model calls go, and with which key."""

from __future__ import annotations

from django.db import models

from .fields import EncryptedTextField, PublicIdModel, one_of
from .users import User


class ProviderKind(models.TextChoices):
    ANTHROPIC = "anthropic", "Anthropic API"
    SUBSCRIPTION = "subscription", "Claude subscription (token)"
    GATEWAY = "gateway", "Anthropic-compatible gateway"
    DEMO = "demo", "Demo model (scripted)"


class ProviderQuerySet(models.QuerySet["Provider"]):
    def visible_to(self, user: User) -> ProviderQuerySet:
        """The person's own providers and those the owner shares with the site."""
        return self.filter(models.Q(owner=None) | models.Q(owner=user))

    def editable_by(self, user: User) -> ProviderQuerySet:
        own = models.Q(owner=user)
        return self.filter(own | models.Q(owner=None) if user.is_owner else own)


class Provider(PublicIdModel):
    owner = models.ForeignKey(  # NULL: for the whole site
        User, null=True, blank=True, on_delete=models.CASCADE, related_name="providers"
    )
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=12, choices=ProviderKind.choices)
    base_url = models.URLField(max_length=500, blank=True, default="")
    api_key = EncryptedTextField(blank=True, default="")
    # What a 9Router-style upstream wants before each model name, such as "cc/".
    model_prefix = models.CharField(max_length=40, blank=True, default="")
    bare = models.BooleanField(default=False)
    is_enabled = models.BooleanField(default=True)
    models_found = models.JSONField(default=list, blank=True)
    models_typed = models.JSONField(default=list, blank=True)
    """Names that a person entered, for a provider that lists none or not all."""
    tested_at = models.DateTimeField(null=True, blank=True)
    test_error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProviderQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        constraints = [
            one_of("kind", ProviderKind),
            models.UniqueConstraint(
                fields=["kind"],
                condition=models.Q(kind="demo", owner=None),
                name="provider_one_demo",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_key(self) -> bool:
        return bool(self.api_key)
