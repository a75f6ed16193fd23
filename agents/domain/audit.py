"""Writing audit entries."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from agents.models import AuditEntry, User
from agents.models.fields import fitting
from agents.rendering.text import clean_json


def record(
    action: str,
    *,
    actor: User | None,
    target: Model | None = None,
    address: str = "",
    **data: Any,
) -> None:
    """Append one entry; `data` must be JSON values and hold no secret."""
    AuditEntry.objects.create(
        action=action,
        actor=actor,
        target_type=target._meta.model_name or "" if target is not None else "",
        target_id=str(target.pk) if target is not None else "",
        data=clean_json(data),
        **fitting(AuditEntry, address=address),
    )
