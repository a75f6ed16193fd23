"""The index on SQLite: an FTS5 table of trigrams that holds no text of its own.

A document's rowid is its session's number and its place there, `number << 20 | seq`, so
that the sessions of many hits, and the hits of one session, are read from the index
alone. Place 0 is the session's name. The table is contentless: to remove a document its
old text must be given, which a trigger has at hand.

No view and no trigger on another table may name `agents_message`: SQLite would then
refuse the renaming by which Django changes that table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from uuid import UUID

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q
from django.db.models.expressions import RawSQL

from .documents import MAX_TOOL_CHARACTERS

_VERSION = 1  # grows when what is indexed changes; the index is then made anew
_SEQ_BITS = 20
_LAST_SEQ = (1 << _SEQ_BITS) - 1
_TABLES = ("agents_search", "agents_search_session")
_PREFIX = f"agents_search_v{_VERSION}"


def _document(row: str) -> str:
    """SQL for what is searched of the message `row`; see `documents.searched_text`."""
    return f"""CASE {row}.role
      WHEN 'tool_call' THEN {row}.tool_name || char(10) || coalesce(
        (SELECT group_concat(substr(atom, 1, {MAX_TOOL_CHARACTERS}), char(10))
         FROM json_tree({row}.content, '$.input') WHERE type = 'text'), '')
      WHEN 'tool_result' THEN substr({row}.text, 1, {MAX_TOOL_CHARACTERS})
      ELSE {row}.text END"""


def _is_searched(row: str) -> str:
    return f"NOT {row}.is_streaming AND NOT {row}.hidden AND {row}.seq <= {_LAST_SEQ}"


def _add(row: str) -> str:
    return f"""INSERT INTO agents_search (rowid, text)
      SELECT s.number << {_SEQ_BITS} | {row}.seq, {_document(row)}
      FROM agents_search_session s
      WHERE s.session_id = {row}.session_id AND {_is_searched(row)};"""


def _remove(row: str) -> str:
    return f"""INSERT INTO agents_search (agents_search, rowid, text)
      SELECT 'delete', s.number << {_SEQ_BITS} | {row}.seq, {_document(row)}
      FROM agents_search_session s
      WHERE s.session_id = {row}.session_id AND {_is_searched(row)};"""


_DECIDING = (
    *("session_id", "seq", "role", "text"),
    *("content", "tool_name", "is_streaming", "hidden"),
)
_HAS_CHANGED = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in _DECIDING)
_REMOVE_NAME = f"""INSERT INTO agents_search (agents_search, rowid, text)
  SELECT 'delete', number << {_SEQ_BITS}, OLD.name
  FROM agents_search_session WHERE session_id = OLD.id;"""
_ADD_NAME = f"""INSERT INTO agents_search (rowid, text)
  SELECT number << {_SEQ_BITS}, NEW.name
  FROM agents_search_session WHERE session_id = NEW.id;"""
_TRIGGERS = {
    "message_insert": f"AFTER INSERT ON agents_message BEGIN {_add('NEW')} END",
    "message_delete": f"AFTER DELETE ON agents_message BEGIN {_remove('OLD')} END",
    # A text that grows each second while it streams costs nothing: neither its old
    # nor its new state is searched.
    "message_update": f"""AFTER UPDATE OF {", ".join(_DECIDING)} ON agents_message
      WHEN NOT (OLD.is_streaming AND NEW.is_streaming) AND ({_HAS_CHANGED})
      BEGIN {_remove("OLD")} {_add("NEW")} END""",
    "session_insert": f"""AFTER INSERT ON agents_agentsession BEGIN
      INSERT INTO agents_search_session (session_id) VALUES (NEW.id);
      {_ADD_NAME} END""",
    "session_update": f"""AFTER UPDATE OF name ON agents_agentsession
      WHEN OLD.name IS NOT NEW.name BEGIN {_REMOVE_NAME} {_ADD_NAME} END""",
    "session_delete": f"""AFTER DELETE ON agents_agentsession BEGIN {_REMOVE_NAME}
      DELETE FROM agents_search_session WHERE session_id = OLD.id; END""",
}
_CREATE = (
    """CREATE TABLE agents_search_session (number INTEGER PRIMARY KEY AUTOINCREMENT,
      session_id char(32) NOT NULL UNIQUE)""",
    """CREATE VIRTUAL TABLE agents_search
      USING fts5(text, content='', tokenize='trigram')""",
    *(f"CREATE TRIGGER {_PREFIX}_{name} {body}" for name, body in _TRIGGERS.items()),
)
_FILL = (
    "INSERT INTO agents_search_session (session_id) SELECT id FROM agents_agentsession",
    f"""INSERT INTO agents_search (rowid, text) SELECT s.number << {_SEQ_BITS}, a.name
      FROM agents_search_session s JOIN agents_agentsession a ON a.id = s.session_id""",
    f"""INSERT INTO agents_search (rowid, text)
      SELECT s.number << {_SEQ_BITS} | m.seq, {_document("m")} FROM agents_message m
      JOIN agents_search_session s ON s.session_id = m.session_id
      WHERE {_is_searched("m")} ORDER BY 1""",
)


def is_installed(database: BaseDatabaseWrapper) -> bool:
    wanted = {*_TABLES, *(f"{_PREFIX}_{name}" for name in _TRIGGERS)}
    return wanted <= _names(database)


def install(database: BaseDatabaseWrapper) -> None:
    """Make the index anew, with everything that is there."""
    uninstall(database)
    with database.cursor() as cursor:
        for statement in (*_CREATE, *_FILL):
            cursor.execute(statement)


def uninstall(database: BaseDatabaseWrapper) -> None:
    triggers = [name for name in _names(database) if re.search(r"_v\d+_", name)]
    with database.cursor() as cursor:
        for name in triggers:
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
        for name in _TABLES:
            cursor.execute(f"DROP TABLE IF EXISTS {name}")


def _names(database: BaseDatabaseWrapper) -> set[str]:
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM sqlite_master"
            " WHERE name LIKE 'agents\\_search%' ESCAPE '\\'"
        )
        return {name for (name,) in cursor.fetchall()}


def _phrase(query: str) -> str:
    """The query as one FTS5 string, in which nothing but the quote is special."""
    return '"{}"'.format(query.replace('"', '""'))


def sessions_with(query: str) -> Q:
    """The sessions in which the text occurs, by name or by message."""
    found = RawSQL(
        "SELECT session_id FROM agents_search_session WHERE number IN"
        f" (SELECT DISTINCT rowid >> {_SEQ_BITS} FROM agents_search"
        " WHERE agents_search MATCH %s)",
        [_phrase(query)],
    )
    return Q(pk__in=found)


def newest_hits(query: str, session_ids: Iterable[UUID], count: int) -> Q:
    """The newest `count` messages of each session that match, as a filter."""
    numbers = _numbers(session_ids)
    hits = _newest_seqs(query, list(numbers), count)
    condition = Q(pk__in=[])
    for number, session_id in numbers.items():
        if seqs := hits.get(number):
            condition |= Q(session_id=session_id, seq__in=seqs)
    return condition


def _numbers(session_ids: Iterable[UUID]) -> dict[int, UUID]:
    keys = [session_id.hex for session_id in session_ids]
    places = ", ".join(["%s"] * len(keys))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT number, session_id FROM agents_search_session"
            f" WHERE session_id IN ({places})",
            keys,
        )
        return {number: UUID(key) for number, key in cursor.fetchall()}


def _newest_seqs(query: str, numbers: list[int], count: int) -> dict[int, list[int]]:
    if not numbers:
        return {}
    one = (
        "SELECT * FROM (SELECT rowid FROM agents_search WHERE agents_search MATCH %s"
        " AND rowid BETWEEN %s AND %s ORDER BY rowid DESC LIMIT %s)"
    )
    values: list[str | int] = []
    for number in numbers:
        start = number << _SEQ_BITS
        values += [_phrase(query), start + 1, start + _LAST_SEQ, count]
    found: dict[int, list[int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join([one] * len(numbers)), values)
        for (rowid,) in cursor.fetchall():
            found.setdefault(rowid >> _SEQ_BITS, []).append(rowid & _LAST_SEQ)
    return found
