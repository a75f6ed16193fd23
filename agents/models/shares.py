"""Shares: another person of the site may look at a session, or operate it."""

from __future__ import annotations

from django.db import models

from .fields import PublicIdModel, one_of
from .sessions import AgentSession, ShareRight
from .users import User


class Share(PublicIdModel):
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="shares"
    )
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="shares")
    right = models.CharField(
        max_length=7, choices=ShareRight.choices, default=ShareRight.VIEW
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "user"], name="share_once_per_user"
            ),
            one_of("right", ShareRight),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} may {self.right} {self.session_id}"
