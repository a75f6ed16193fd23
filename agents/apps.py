"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = "OpenSwarm"

    def ready(self) -> None:
        from . import checks  # noqa: F401  registers the system checks
        from .domain.builtin_modes import seed_builtin_modes
        from .domain.search.index import ensure_index

        post_migrate.connect(seed_builtin_modes, sender=self)
        post_migrate.connect(ensure_index, sender=self)
