"""Building blocks of the models: public ids, closed sets, encrypted text."""

from __future__ import annotations

import base64
import hashlib
import uuid
from enum import Enum
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models

from agents.rendering.text import clean_text

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    TextField = models.TextField[str, str]
else:
    TextField = models.TextField  # generic for the type checker only


class PublicIdModel(models.Model):
    """A row that a URL may show: its key is a random UUID."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)

    class Meta:
        abstract = True


def one_of(
    field: str, choices: type[Enum], *, blank: bool = False
) -> models.CheckConstraint:
    """The database's own copy of a closed set."""
    values = [choice.value for choice in choices]
    return models.CheckConstraint(
        condition=models.Q(**{f"{field}__in": [*values, ""] if blank else values}),
        name=f"%(class)s_{field}_valid",
    )


def fitting(model: type[models.Model], /, **columns: Any) -> dict[str, Any]:
    """`columns` with every text cleaned and cut to what its column takes.

    For names and ids that models, tools and upstreams choose: PostgreSQL refuses what
    SQLite lets pass, and a turn must not die of it.
    """
    return {name: _fit(model, name, value) for name, value in columns.items()}


def _fit(model: type[models.Model], name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return clean_text(value)[: getattr(model._meta.get_field(name), "max_length", None)]


def cipher() -> MultiFernet:
    """Encrypts with the first configured key and decrypts with any of them."""
    return MultiFernet([_fernet(key) for key in settings.ENCRYPTION_KEYS])


def _fernet(secret: str) -> Fernet:
    digest = hashlib.sha256(secret.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))


class EncryptedTextField(TextField):
    """Text that is encrypted in the database; empty stays empty.

    A value that none of the keys decrypts reads as empty, and its owner has to
    enter it again: a lost key must not make a whole page fail.
    """

    def get_prep_value(self, value: Any) -> Any:
        if not value:
            return ""
        return cipher().encrypt(str(value).encode()).decode()

    def from_db_value(
        self, value: str | None, expression: Any, connection: BaseDatabaseWrapper
    ) -> str:
        if not value:
            return ""
        try:
            return cipher().decrypt(value.encode()).decode()
        except InvalidToken:
            return ""
