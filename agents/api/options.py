"""What a program may set about a session, from its words to the domain's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import Q
from ninja import Schema
from pydantic import ConfigDict, Field

from agents.domain.messages import MAX_PROMPT_CHARACTERS
from agents.errors import InvalidInputError
from agents.models import ListedFolder, Provider, User
from agents.models.providers import ProviderKind

from .records import MICROS

Task = Annotated[str, Field(min_length=1, max_length=MAX_PROMPT_CHARACTERS)]
Name = Annotated[str, Field(max_length=200)]
Effort = Literal["low", "medium", "high", "max"]
SecurityMode = Literal["deny", "sandbox", "allowlist", "ask", "full"]
Steps = Annotated[int, Field(strict=True, ge=1, le=200)]
Budget = Annotated[float, Field(strict=True, ge=0.01, le=100_000)]
Temperature = Annotated[float, Field(strict=True, ge=0, le=1)]
Flag = Annotated[bool, Field(strict=True)]


class Input(Schema):
    """A body; what it does not know is an error, not something that has no effect."""

    model_config = ConfigDict(extra="forbid")


@contextmanager
def naming(field: str, *, for_domain: str = "text") -> Iterator[None]:
    """What the domain calls `text` has another name in this body."""
    try:
        yield
    except InvalidInputError as error:
        if error.field == for_domain:
            error.field = field
        raise


def usable_provider(user: User, name: str | None) -> Provider | None:
    """The provider of this id or name; None, the default, where none is named.

    Raises: InvalidInputError.
    """
    if not name:
        return None
    wanted = Q(name=name)
    if _is_uuid(name):
        wanted |= Q(pk=name)
    usable = Provider.objects.visible_to(user).filter(wanted, is_enabled=True)
    found = usable.exclude(kind=ProviderKind.DEMO).first()
    if found is None:
        raise InvalidInputError(
            "There is no provider of this name that you may use.", field="provider"
        )
    return found


def listed_folder(folder_id: UUID | None) -> ListedFolder | None:
    """Raises: InvalidInputError."""
    if folder_id is None:
        return None
    found = ListedFolder.objects.filter(pk=folder_id).first()
    if found is None:
        raise InvalidInputError("There is no such folder.", field="folder_id")
    return found


def usd_micros(amount: float | None) -> int | None:
    return None if amount is None else round(amount * MICROS)


def given(**values: Any) -> dict[str, Any]:
    """Those that were said; what is None stays as it is."""
    return {name: value for name, value in values.items() if value is not None}


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
