"""Changing and reading rows of runs, as other workers and the clock would."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from agents.models import AgentSession, Message, Run


def lose_lease(run: Run) -> None:
    """Another worker takes the run over."""
    Run.objects.filter(pk=run.pk).update(fencing=run.fencing + 1)


def let_lease_expire(run: Run) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Run.objects.filter(pk=run.pk).update(lease_expires_at=past)


def rows(session: AgentSession) -> list[tuple[Any, ...]]:
    return [
        *session.messages.values_list("pk", "seq", "text", "is_streaming", "outcome"),
        *session.runs.values_list("pk", "state", "stop_reason", "lease_expires_at"),
        *session.events.values_list("seq", "type"),
    ]


def result_of(run: Run, tool_use_id: str = "toolu_1") -> Message:
    return run.session.messages.get(role="tool_result", tool_use_id=tool_use_id)


def notice_of(run: Run) -> Message:
    return run.session.messages.get(role="system")
