"""Makes the search index after `migrate`, and tells whether it is there.

Not a migration: the index is derived from the rows, changes with its own version, and
has to be made again whenever SQLite rebuilt a table.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from . import postgres, sqlite

_TABLE = "agents_message"


def backend_of(database: BaseDatabaseWrapper) -> ModuleType:
    return postgres if database.vendor == "postgresql" else sqlite


def ensure_index(using: str = DEFAULT_DB_ALIAS, **_: Any) -> None:
    """Handler of `post_migrate`; costs one query when all is well.

    A PostgreSQL without `pg_trgm` has it made anew each time, which does no harm.
    """
    database = connections[using]
    backend = backend_of(database)
    if backend.is_installed(database):
        return
    with transaction.atomic(using=using):
        if _TABLE in database.introspection.table_names():
            backend.install(database)
        else:  # migrated back to nothing
            backend.uninstall(database)


def is_indexed() -> bool:
    """Whether searches use an index; without one they read every message."""
    return bool(backend_of(connection).is_installed(connection))
