"""`manage.py runserver`: pages only; says that agents need `serve`."""

from __future__ import annotations

from typing import Any

from daphne.management.commands.runserver import Command as DaphneCommand

NOTICE = (
    "runserver has no place for agents: it shows pages, but starts no runs. For"
    " development with agents use: manage.py serve --reload (or: make dev)."
)


class Command(DaphneCommand):  # type: ignore[misc]  # Daphne has no types
    help = f"Serve pages without agents. {NOTICE}"

    def inner_run(self, *args: Any, **options: Any) -> None:
        self.stderr.write(self.style.WARNING(NOTICE))
        super().inner_run(*args, **options)
