"""Folders of the machine that the owner has opened to agents."""

from __future__ import annotations

from django.db import models

from .fields import PublicIdModel


class ListedFolder(PublicIdModel):
    name = models.CharField(max_length=100)
    path = models.CharField(max_length=1000, unique=True)
    added_by = models.ForeignKey(
        "agents.User", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
