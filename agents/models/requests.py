"""The last request that each session sent to a model: "what the model saw"."""

from __future__ import annotations

from django.db import models

from .sessions import AgentSession


class ModelRequest(models.Model):
    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, related_name="last_request"
    )
    body_zlib = models.BinaryField()
    """The JSON body, zlib-compressed; without headers, so without any key."""
    body_bytes = models.PositiveBigIntegerField()
    is_truncated = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"Last request of {self.session_id}"
