"""The index on PostgreSQL: a table of lower-case texts with an index of trigrams.

Triggers keep it: a row for each finished, visible message, and one for each session's
name (place 0). Lower case, because comparing in it is what makes common words fast:
ILIKE would fold each text again. What is a letter's lower case is the database's own
locale to say.

The triggers name no column, else Django could no longer change a column's type. The
module `pg_trgm` comes with the server and may be made by the database's owner; without
it the same queries work, only slowly.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import DatabaseError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q
from django.db.models.expressions import RawSQL

from .documents import MAX_TOOL_CHARACTERS

_VERSION = 1  # grows when what is indexed changes; the index is then made anew
_TRIGRAMS = f"agents_search_v{_VERSION}_trigrams"
_TRIGGERS = {
    f"agents_search_v{_VERSION}_message": "agents_message",
    f"agents_search_v{_VERSION}_session": "agents_agentsession",
}
_CREATE = f"""
CREATE TABLE agents_search (
  id uuid PRIMARY KEY, session_id uuid NOT NULL, seq bigint NOT NULL, text text NOT NULL
);
CREATE INDEX agents_search_place ON agents_search (session_id, seq);

-- See `documents.searched_text`.
CREATE FUNCTION agents_search_text(role text, text text, tool text, content jsonb)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT lower(CASE role
    WHEN 'tool_call' THEN tool || E'\\n' || coalesce(
      (SELECT string_agg(left(leaf #>> '{{}}', {MAX_TOOL_CHARACTERS}), E'\\n')
       FROM jsonb_path_query(content, 'strict $.input.**', '{{}}', true) leaf
       WHERE jsonb_typeof(leaf) = 'string'), '')
    WHEN 'tool_result' THEN left(text, {MAX_TOOL_CHARACTERS})
    ELSE text END)
$$;

CREATE FUNCTION agents_search_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    DELETE FROM agents_search;
    RETURN NULL;
  END IF;
  IF TG_OP = 'UPDATE' THEN
    -- A text that grows each second while it streams costs nothing here.
    IF OLD.is_streaming AND NEW.is_streaming THEN RETURN NULL; END IF;
    IF (OLD.session_id, OLD.seq, OLD.role, OLD.text, OLD.content, OLD.tool_name,
        OLD.is_streaming, OLD.hidden)
      IS NOT DISTINCT FROM (NEW.session_id, NEW.seq, NEW.role, NEW.text, NEW.content,
        NEW.tool_name, NEW.is_streaming, NEW.hidden) THEN RETURN NULL; END IF;
  END IF;
  IF TG_OP = 'DELETE' OR NEW.is_streaming OR NEW.hidden THEN
    DELETE FROM agents_search WHERE id = OLD.id;
    RETURN NULL;
  END IF;
  INSERT INTO agents_search (id, session_id, seq, text) VALUES (NEW.id, NEW.session_id,
    NEW.seq, agents_search_text(NEW.role, NEW.text, NEW.tool_name, NEW.content))
  ON CONFLICT (id) DO UPDATE SET
    session_id = EXCLUDED.session_id, seq = EXCLUDED.seq, text = EXCLUDED.text;
  RETURN NULL;
END $$;

CREATE FUNCTION agents_search_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM agents_search WHERE id = OLD.id;
    RETURN NULL;
  END IF;
  IF TG_OP = 'UPDATE' THEN
    IF OLD.name = NEW.name THEN RETURN NULL; END IF;
  END IF;
  INSERT INTO agents_search (id, session_id, seq, text)
    VALUES (NEW.id, NEW.id, 0, lower(NEW.name))
  ON CONFLICT (id) DO UPDATE SET text = EXCLUDED.text;
  RETURN NULL;
END $$;
"""
_FILL = """
INSERT INTO agents_search (id, session_id, seq, text)
  SELECT id, id, 0, lower(name) FROM agents_agentsession
  UNION ALL
  SELECT id, session_id, seq, agents_search_text(role, text, tool_name, content)
  FROM agents_message WHERE NOT is_streaming AND NOT hidden
"""


def is_installed(database: BaseDatabaseWrapper) -> bool:
    return {_TRIGRAMS, *_TRIGGERS} <= _names(database)


def install(database: BaseDatabaseWrapper) -> None:
    """Make the index anew, with everything that is there."""
    uninstall(database)
    with database.cursor() as cursor:
        cursor.execute(_CREATE)
        for name, table in _TRIGGERS.items():
            function = f"agents_search_{name.rpartition('_')[2]}()"
            cursor.execute(
                f"CREATE TRIGGER {name} AFTER INSERT OR UPDATE OR DELETE ON {table}"
                f" FOR EACH ROW EXECUTE FUNCTION {function}"
            )
        cursor.execute(
            "CREATE TRIGGER agents_search_emptied AFTER TRUNCATE ON agents_message"
            " EXECUTE FUNCTION agents_search_message()"
        )
        cursor.execute(_FILL)
        if _has_trigrams(database):
            cursor.execute(
                f"CREATE INDEX {_TRIGRAMS} ON agents_search USING gin"
                " (text gin_trgm_ops)"
            )


def uninstall(database: BaseDatabaseWrapper) -> None:
    with database.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS agents_search")
        for signature in ("message()", "session()", "text(text, text, text, jsonb)"):
            # The triggers go with their functions, whatever version they are of.
            cursor.execute(f"DROP FUNCTION IF EXISTS agents_search_{signature} CASCADE")


def _names(database: BaseDatabaseWrapper) -> set[str]:
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
            " AND tablename = 'agents_search' UNION SELECT tgname FROM pg_trigger"
            " WHERE tgrelid = to_regclass('agents_message')"
            " OR tgrelid = to_regclass('agents_agentsession')"
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
    found = RawSQL(
        "SELECT session_id FROM agents_search WHERE text LIKE lower(%s)",
        [_pattern(query)],
    )
    return Q(pk__in=found)


def newest_hits(query: str, session_ids: Iterable[UUID], count: int) -> Q:
    """The newest `count` messages of each session that match, as a filter."""
    found = RawSQL(
        "SELECT hit.id FROM unnest(%s::uuid[]) AS chosen (id), LATERAL ("
        "  SELECT id FROM agents_search WHERE session_id = chosen.id AND seq > 0"
        "  AND text LIKE lower(%s) ORDER BY seq DESC LIMIT %s) hit",
        [list(session_ids), _pattern(query), count],
    )
    return Q(pk__in=found)
