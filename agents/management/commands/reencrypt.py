"""`manage.py reencrypt`: encrypt every stored secret with the newest key.

For changing the encryption key; docs/howto/deploy.md says how. Works on the stored
text, past the fields: those read what no key decrypts as empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cryptography.fernet import InvalidToken
from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction
from django.db.models import Field, Model

from agents.models.fields import EncryptedTextField, cipher


class Command(BaseCommand):
    help = "Encrypt every stored secret with the newest key."

    def handle(self, *args: Any, **options: Any) -> None:
        done = lost = 0
        with transaction.atomic():
            for model, field in _encrypted_fields():
                for key, stored in _stored(model, field):
                    try:
                        renewed = cipher().rotate(stored.encode()).decode()
                    except InvalidToken:
                        lost += 1
                        continue
                    done += _replace(model, field, key, stored, renewed)
        self.stdout.write(f"{done} secret(s) are encrypted with the newest key.")
        if lost:
            raise CommandError(
                f"{lost} secret(s) can't be read with any of the keys and were left as"
                " they are. Keep the old keys, or enter these secrets anew."
            )


def _encrypted_fields() -> Iterator[tuple[type[Model], Field[Any, Any]]]:
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, EncryptedTextField):
                yield model, field


def _stored(model: type[Model], field: Field[Any, Any]) -> list[tuple[Any, str]]:
    table, key, column = _names(model, field)
    query = f"SELECT {key}, {column} FROM {table} WHERE {column} <> ''"  # noqa: S608  names of ours
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def _replace(
    model: type[Model], field: Field[Any, Any], key: Any, stored: str, renewed: str
) -> int:
    """Unless somebody has just entered another secret there."""
    table, key_column, column = _names(model, field)
    where = f"{key_column} = %s AND {column} = %s"
    query = f"UPDATE {table} SET {column} = %s WHERE {where}"  # noqa: S608  names of ours
    with connection.cursor() as cursor:
        cursor.execute(query, [renewed, key, stored])
        return int(cursor.rowcount)


def _names(model: type[Model], field: Field[Any, Any]) -> tuple[str, str, str]:
    key = model._meta.pk
    assert key is not None
    names = (model._meta.db_table, key.column, field.column)
    table, key_column, column = (connection.ops.quote_name(str(name)) for name in names)
    return table, key_column, column
