"""Modes: named ways of working, each with its own tools and instructions."""

from __future__ import annotations

from django.db import models

from .fields import PublicIdModel
from .users import User


class ModeQuerySet(models.QuerySet["Mode"]):
    def visible_to(self, user: User) -> ModeQuerySet:
        return self.filter(models.Q(owner=None) | models.Q(owner=user))

    def shared(self) -> ModeQuerySet:
        """Those of the site, built in or made by its owners."""
        return self.filter(owner=None)

    def editable_by(self, user: User) -> ModeQuerySet:
        """One's own, and for owners of the site also those that they made for all."""
        mine = models.Q(owner=user)
        if user.is_owner:
            mine |= models.Q(owner=None, is_builtin=False)
        return self.filter(mine)


class Mode(PublicIdModel):
    owner = models.ForeignKey(  # NULL: of the site, for everybody
        User, null=True, blank=True, on_delete=models.CASCADE, related_name="modes"
    )
    slug = models.SlugField(max_length=64)
    name = models.CharField(max_length=100)
    description = models.TextField(blank=True, default="")
    system_prompt = models.TextField(blank=True, default="")
    tools = models.JSONField(null=True, blank=True)  # NULL: every tool
    default_next_mode = models.CharField(max_length=64, blank=True, default="")
    is_builtin = models.BooleanField(default=False)
    icon = models.CharField(max_length=40, default="bot")
    color = models.CharField(max_length=9, default="#818cf8")

    objects = ModeQuerySet.as_manager()

    class Meta:
        ordering = ["-is_builtin", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "slug"], name="mode_slug_unique_per_owner"
            ),
            # NULL is distinct from NULL on SQLite, so the built-in ones need their own.
            models.UniqueConstraint(
                fields=["slug"],
                condition=models.Q(owner=None),
                name="mode_slug_unique_builtin",
            ),
        ]

    def __str__(self) -> str:
        return self.name
