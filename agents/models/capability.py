"""Capabilities: what is known of a model beyond our own table of models."""

from __future__ import annotations

from django.db import models

from .fields import PublicIdModel


class CapabilitySource(models.TextChoices):
    """Who says so; from the weakest word to the strongest."""

    UNVERIFIED = "unverified", "unverified"
    TABLE = "table", "our table"
    CLI = "cli", "the CLI’s list"
    OBSERVED = "observed", "seen in a result"
    PERSON = "person", "set by a person"

    @property
    def rank(self) -> int:
        return list(CapabilitySource).index(self)


class ModelCapability(PublicIdModel):
    """One model by its plain name; NULL where only the table or nobody knows."""

    name = models.CharField(max_length=200, unique=True)
    native_tools = models.BooleanField(null=True, blank=True)
    thinking = models.BooleanField(null=True, blank=True)
    effort_levels = models.JSONField(null=True, blank=True)
    vision = models.BooleanField(null=True, blank=True)
    streaming = models.BooleanField(null=True, blank=True)
    context_window = models.PositiveIntegerField(null=True, blank=True)
    max_output = models.PositiveIntegerField(null=True, blank=True)
    sources = models.JSONField(default=dict, blank=True)
    """{feature: CapabilitySource} of the columns that are not NULL."""
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "model capabilities"

    def __str__(self) -> str:
        return self.name
