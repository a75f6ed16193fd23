"""Writing analytics events; what each is made of stands in `analytics.py`."""

from __future__ import annotations

from typing import Any, Final

from agents.models import AgentSession, AnalyticsEvent, User
from agents.rendering.text import clean_json

NAMES: Final = frozenset(
    {
        "session.started",
        "session.first_message",
        "session.completed",
        "session.resumed",
        "session.error",
        "session.branched",
        "turn.completed",
        "tool.executed",
        "approval.requested",
        "approval.resolved",
        "model.switched",
        "context.attached",
        "feature.used",
        "provider.configured",
        "settings.changed",
        "app.opened",
        "app.heartbeat",
        "cost.snapshot",
    }
)


def record(
    name: str,
    *,
    session: AgentSession | None = None,
    user: User | None = None,
    **data: Any,
) -> None:
    """Keep one event; `user` is the session's owner where nobody else is named."""
    new_event(name, session, user, data).save(force_insert=True)


def new_event(
    name: str, session: AgentSession | None, user: User | None, data: dict[str, Any]
) -> AnalyticsEvent:
    assert name in NAMES, f"there is no analytics event {name}"
    if user is None and session is not None:
        user = session.owner
    return AnalyticsEvent(type=name, session=session, user=user, data=clean_json(data))
