"""Whether the history is searched by an index, and in which letters."""

from __future__ import annotations

from django.db import DatabaseError, connection

from agents.domain.search.index import is_indexed
from agents.models import Message

from .findings import Finding, failed, ok, warning

_SUBJECT = "Search"


def check_search() -> Finding:
    try:
        if Message._meta.db_table not in connection.introspection.table_names():
            return ok(_SUBJECT, "no tables yet: the first start makes the index")
        if not is_indexed():
            return _missing_index()
        if not _folds_letters():
            return warning(
                _SUBJECT,
                "indexed, but the database's locale knows no capitals beyond A to Z."
                " Make the database with a UTF-8 locale, such as C.UTF-8.",
            )
    except DatabaseError as error:
        return failed(_SUBJECT, str(error))
    return ok(_SUBJECT, "indexed")


def _missing_index() -> Finding:
    if connection.vendor == "postgresql":
        return warning(
            _SUBJECT,
            "works, but reads every message: the index needs PostgreSQL's pg_trgm."
            " Let a superuser do CREATE EXTENSION pg_trgm, then: manage.py migrate",
        )
    return failed(_SUBJECT, "the index is missing. Do: manage.py migrate")


def _folds_letters() -> bool:
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT lower('Ä') = 'ä'")
        return bool(cursor.fetchone()[0])
