"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = "OpenSwarm"

    def ready(self) -> None:
        from . import checks  # noqa: F401  registers the system checks
