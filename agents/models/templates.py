"""Prompt templates: texts with typed fields that a person fills in again and again."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from .fields import PublicIdModel
from .users import User


class FieldType(models.TextChoices):
    TEXT = "text", "Text"
    LONG_TEXT = "long_text", "Long text"
    NUMBER = "number", "Number"
    CHOICE = "choice", "Choice"
    DATE = "date", "Date"


class PromptTemplateQuerySet(models.QuerySet["PromptTemplate"]):
    def visible_to(self, user: User) -> PromptTemplateQuerySet:
        return self.filter(owner=user)


class PromptTemplate(PublicIdModel):
    owner = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="prompt_templates"
    )
    name = models.CharField(max_length=100)
    description = models.CharField(max_length=300, blank=True, default="")
    text = models.TextField()
    """With `{{field}}` where the fields' values go."""
    fields = models.JSONField(default=list, blank=True)
    """[{"name", "label", "type": a FieldType, "required", "options": […],
    "default"}], in the order in which they are asked."""
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = PromptTemplateQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"], name="template_name_unique_per_owner"
            )
        ]

    def __str__(self) -> str:
        return self.name
