"""The index on PostgreSQL: trigrams (`pg_trgm`) of the texts, in two partial indexes.

They are over expressions, so the rows themselves are all there is to keep current, and
a text that is being streamed is in neither. `pg_trgm` comes with the server and may be
made by the database's owner; without it the same queries work, only slowly.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import DatabaseError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, F, Q, Window
from django.db.models.expressions import RawSQL
from django.db.models.functions import RowNumber

from agents.models import Message

from .documents import MAX_TOOL_CHARACTERS

_VERSION = 1  # grows when what is indexed changes; the indexes are then made anew
_FUNCTION = "agents_search_input"
_VISIBLE = "NOT is_streaming AND NOT hidden"
_TEXT = (
    f"(CASE WHEN role = 'tool_result' THEN left(text, {MAX_TOOL_CHARACTERS})"
    " ELSE text END)"
)
_IS_TEXT = f"{_VISIBLE} AND role <> 'tool_call'"
_INPUT = f"{_FUNCTION}(tool_name, content)"
_IS_INPUT = f"{_VISIBLE} AND role = 'tool_call'"
_INDEXES = {
    f"agents_search_v{_VERSION}_text": (_TEXT, _IS_TEXT),
    f"agents_search_v{_VERSION}_input": (_INPUT, _IS_INPUT),
}
# See `documents.searched_text`. Its output is part of the index: on a change of it the
# version grows.
_CREATE_FUNCTION = f"""
CREATE OR REPLACE FUNCTION {_FUNCTION}(tool_name text, content jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT tool_name || E'\\n' || coalesce(
    (SELECT string_agg(left(leaf #>> '{{}}', {MAX_TOOL_CHARACTERS}), E'\\n')
     FROM jsonb_path_query(content, 'strict $.input.**', '{{}}', true) leaf
     WHERE jsonb_typeof(leaf) = 'string'), '')
$$"""


def is_installed(database: BaseDatabaseWrapper) -> bool:
    return set(_INDEXES) <= _index_names(database)


def install(database: BaseDatabaseWrapper) -> None:
    """Make what is missing. Without `pg_trgm` that is the function alone."""
    uninstall(database)
    with database.cursor() as cursor:
        cursor.execute(_CREATE_FUNCTION)
        if not _has_trigrams(database):
            return
        for name, (expression, condition) in _INDEXES.items():
            cursor.execute(
                f"CREATE INDEX {name} ON agents_message"
                f" USING gin ({expression} gin_trgm_ops) WHERE {condition}"
            )


def uninstall(database: BaseDatabaseWrapper) -> None:
    with database.cursor() as cursor:
        for name in _index_names(database):
            cursor.execute(f"DROP INDEX {name}")
        cursor.execute(f"DROP FUNCTION IF EXISTS {_FUNCTION}(text, jsonb)")


def _index_names(database: BaseDatabaseWrapper) -> set[str]:
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
            " AND indexname LIKE 'agents\\_search\\_%'"
        )
        return {name for (name,) in cursor.fetchall()}


def _has_trigrams(database: BaseDatabaseWrapper) -> bool:
    try:
        with transaction.atomic(using=database.alias), database.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    except DatabaseError:  # not there, or not allowed
        return False
    return True


def _pattern(query: str) -> str:
    return f"%{connection.ops.prep_for_like_query(query)}%"


def sessions_with(query: str) -> Q:
    """The sessions in which the text occurs, by name or by message."""
    pattern = _pattern(query)
    # One list, since an OR over three conditions would rule out the indexes.
    found = RawSQL(
        f"SELECT session_id FROM agents_message WHERE {_IS_TEXT} AND {_TEXT} ILIKE %s"
        f" UNION SELECT session_id FROM agents_message"
        f" WHERE {_IS_INPUT} AND {_INPUT} ILIKE %s"
        " UNION SELECT id FROM agents_agentsession WHERE name ILIKE %s",
        [pattern, pattern, pattern],
    )
    return Q(pk__in=found)


def newest_hits(query: str, session_ids: Iterable[UUID], count: int) -> Q:
    """The newest `count` messages of each session that match, as a filter."""
    pattern = _pattern(query)
    matches = RawSQL(
        f"{_VISIBLE} AND CASE role WHEN 'tool_call' THEN {_INPUT} ILIKE %s"
        f" ELSE {_TEXT} ILIKE %s END",
        [pattern, pattern],
        output_field=BooleanField(),
    )
    ranked = (
        Message.objects.filter(matches, session_id__in=list(session_ids))
        .annotate(
            place=Window(
                RowNumber(), partition_by="session_id", order_by=F("seq").desc()
            )
        )
        .filter(place__lte=count)
    )
    return Q(pk__in=list(ranked.order_by().values_list("pk", flat=True)))
