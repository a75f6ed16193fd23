"""What `base.html` needs beside the page's own context."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.http import HttpRequest

from agents.domain.queries.shell import RailContext, rail
from agents.models import User


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `shell` is the rail, or nothing for somebody not signed in."""
    user = getattr(request, "user", None)  # a request may fail before it has one
    return {"shell": Shell(user) if isinstance(user, User) else {}}


class Shell:
    """Asks the database only once a template looks: most fragments have no rail."""

    def __init__(self, user: User) -> None:
        self._user = user

    def __getitem__(self, name: str) -> Any:
        match name:
            case "user":
                return self._user
            case "theme":
                return self._user.preferences.theme
            case _:
                return getattr(self._rail, name.removeprefix("sessions_"))

    @cached_property
    def _rail(self) -> RailContext:
        return rail(self._user)
