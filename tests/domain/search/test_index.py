"""The index keeps itself current and is used; both databases."""

from __future__ import annotations

import random

import pytest
from django.core.management import call_command
from django.db import connection, models
from django.db.models import QuerySet

from agents.domain import blocks
from agents.domain.history import get_history
from agents.domain.search import index, postgres, sqlite
from agents.domain.search.documents import searched_text
from agents.domain.search.matchers import Matcher
from agents.models import AgentSession, Message
from agents.models.messages import MessageRole
from tests import factories

only_sqlite = pytest.mark.database("sqlite")
only_postgres = pytest.mark.database("postgresql")


def total(user, q: str) -> int:
    return get_history(user, q).total


def sql(statement: str, *values) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def explained(query: QuerySet) -> str:
    return query.explain()


def test_migrating_makes_the_index(db):
    assert index.is_indexed()


@pytest.mark.django_db(transaction=True)
def test_the_index_can_be_made_anew_from_the_rows(run, alice):
    factories.say(run, "an amber vole")
    backend = index.backend_of(connection)

    backend.uninstall(connection)
    assert not index.is_indexed()
    index.ensure_index()

    assert index.is_indexed()
    assert total(alice, "amber vole") == 1
    assert total(alice, "Count to") == 1


@pytest.mark.django_db(transaction=True)
def test_making_it_twice_changes_nothing(run, alice):
    factories.say(run, "an amber vole")

    index.ensure_index()
    index.backend_of(connection).install(connection)

    assert total(alice, "amber vole") == 1


@pytest.mark.parametrize("q", ["vole", "q"])
def test_a_deleted_session_leaves_nothing_to_find(run, alice, q):
    factories.say(run, "an amber vole, q")
    factories.make_session(alice, "Other")
    run.session.delete()

    assert total(alice, q) == 0


@only_sqlite
def test_a_deleted_session_leaves_no_byte_of_its_words(run):
    # The flush after an earlier test empties the tables in any order. Where it took
    # the sessions before their messages, the index still holds words that no row has.
    index.backend_of(connection).install(connection)
    factories.say(run, "an amber vole")
    assert sql("SELECT count(*) FROM agents_search WHERE agents_search MATCH 'vole'")[
        0
    ] == (1,)

    run.session.delete()

    assert sql("SELECT count(*) FROM agents_search_session") == [(0,)]
    sql("INSERT INTO agents_search (agents_search) VALUES ('optimize')")
    sql(
        "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, agents_search, row)"
    )
    try:
        assert sql("SELECT term FROM temp.vocabulary") == []
    finally:
        sql("DROP TABLE temp.vocabulary")


@only_sqlite
def test_streaming_does_not_touch_the_index(run):
    message = blocks.start_stream(run, role=MessageRole.ASSISTANT)
    before = sql("SELECT * FROM agents_search_data")

    for at in range(5):
        blocks.save_stream(message.pk, "growing text " * at)

    assert sql("SELECT * FROM agents_search_data") == before


@only_sqlite
@pytest.mark.django_db(transaction=True)
def test_it_comes_back_after_a_migration_rebuilt_a_table(run, alice):
    """Django changes SQLite's tables by making new ones, without the triggers."""
    factories.say(run, "an amber vole")
    field = models.CharField(max_length=9, default="")
    field.set_attributes_from_name("extra")

    with connection.schema_editor() as editor:
        editor.add_field(Message, field)
        editor.remove_field(Message, field)
        editor.add_field(AgentSession, field)
        editor.remove_field(AgentSession, field)
    assert not index.is_indexed()
    call_command("migrate", verbosity=0)

    assert index.is_indexed()
    factories.say(run, "an amber shrew")
    assert [total(alice, q) for q in ("amber vole", "amber shrew")] == [1, 1]


@only_sqlite
@pytest.mark.parametrize("seq", [(1 << 20) - 1, 1 << 20, 1 << 40])
def test_a_place_beyond_all_reason_reaches_no_other_session(run, charlie, seq):
    factories.make_session(charlie, "Charlie’s own")
    Message.objects.create(
        session=run.session,
        branch=run.branch,
        seq=seq,
        role="assistant",
        text="far away",
    )

    assert total(charlie, "far away") == 0
    assert total(run.session.owner, "far away") == int(seq < 1 << 20)


def test_the_database_searches_the_same_text_as_python(run):
    """Random tool inputs: what the index holds is what snippets are made from."""
    rng = random.Random(7)  # noqa: S311  test data
    for at in range(30):
        factories.call_tool(run, f"toolu_{at}", tool_input={"in": _json(rng, 4)})
    factories.return_result(run, "toolu_1", text="résult\n" * 9_000)

    expression = (
        sqlite._document("agents_message")
        if connection.vendor == "sqlite"
        else "agents_search_text(role, text, tool_name, content)"
    )
    stored = dict(sql(f"SELECT seq, {expression} FROM agents_message"))  # noqa: S608

    for row in Message.objects.all():
        text = searched_text(row.role, row.text, row.content, row.tool_name)
        assert _lines(stored[row.seq]) in (_lines(text), _lines(text.lower()))


def _lines(text: str) -> list[str]:
    """PostgreSQL keeps an object's keys in an order of its own."""
    return sorted(line for line in text.split("\n") if line)


def _json(rng: random.Random, depth: int):
    kinds = ["text", "number", "null", "true", *(["list", "dict"] if depth else [])]
    match rng.choice(kinds):
        case "text":
            return rng.choice(["plain", 'quo"ted', "ü\\n", "line\nbreak", "", "𝒳\t"])
        case "number":
            return rng.choice([0, 1.5, -3])
        case "null":
            return None
        case "true":
            return True
        case "list":
            return [_json(rng, depth - 1) for _ in range(rng.randint(0, 3))]
        case _:
            return {
                f"key{at}": _json(rng, depth - 1) for at in range(rng.randint(0, 3))
            }


@only_sqlite
def test_the_plan_on_sqlite_reads_the_index_alone(run, alice):
    matcher = Matcher("amber vole", alice)

    plan = explained(AgentSession.objects.visible_to(alice).filter(matcher.sessions()))

    assert "agents_search VIRTUAL TABLE INDEX" in plan
    assert "agents_message" not in plan


@only_postgres
@pytest.mark.django_db(transaction=True)
def test_the_plan_on_postgres_uses_the_index(alice):
    session = factories.make_session(alice)
    assert session.active_branch_id is not None
    Message.objects.bulk_create(
        Message(
            session=session,
            branch_id=session.active_branch_id,
            seq=at,
            role="tool_call" if at % 2 else "assistant",
            content={"input": {"command": f"echo number {at}"}},
            text=f"some words, the number {at} and more of them",
        )
        for at in range(10, 4010)
    )
    sql("VACUUM ANALYZE agents_search")
    matcher = Matcher("amber vole", alice)

    plan = explained(AgentSession.objects.visible_to(alice).filter(matcher.sessions()))

    assert postgres._TRIGRAMS in plan
    assert "agents_message" not in plan
