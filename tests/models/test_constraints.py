"""What the database itself refuses, whatever code writes to it."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction

from agents.domain.accounts import preferences_of
from agents.models import (
    AgentSession,
    CostEntry,
    Message,
    Preferences,
    Run,
    SessionEvent,
    TranscriptEntry,
    User,
)
from agents.models.fields import fitting
from tests import factories


def columns_with_choices() -> list[tuple[Any, Any]]:
    return [
        (model, field)
        for model in apps.get_app_config("agents").get_models()
        for field in model._meta.concrete_fields
        if field.choices
    ]


@pytest.mark.parametrize(
    ("model", "field"),
    columns_with_choices(),
    ids=lambda value: getattr(value, "name", "") or value.__name__,
)
def test_every_closed_set_is_checked(model: Any, field: Any) -> None:
    (check,) = [
        constraint
        for constraint in model._meta.constraints
        if constraint.name.endswith(f"_{field.name}_valid")
    ]

    ((lookup, allowed),) = check.condition.children
    assert lookup == f"{field.name}__in"
    values = {value for value, _ in field.flatchoices}
    assert set(allowed) == (values | {""} if field.blank else values)


def test_a_value_outside_its_set_is_refused(session: AgentSession) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        AgentSession.objects.update(status="dreaming")


def test_every_constraint_works_on_this_database() -> None:
    """An unsupported one is left out in silence (NULLS NOT DISTINCT on SQLite)."""
    found = [
        constraint
        for model in apps.get_app_config("agents").get_models()
        for constraint in model._meta.constraints
    ]

    assert found
    unsupported = [
        constraint.name
        for constraint in found
        if getattr(constraint, "nulls_distinct", None) is not None
        or getattr(constraint, "include", None)
    ]
    assert unsupported == []


@pytest.mark.parametrize(
    "values",
    [
        {"client_message_id": "7f6f1e2e-6a5b-4b3e-9d5e-2f6f6b0c1d11"},
        {"tool_use_id": "toolu_1", "role": "tool_call"},
    ],
)
def test_a_message_exists_once(run: Run, values: dict[str, Any]) -> None:
    fields = {"session": run.session, "branch": run.branch, "role": "user", **values}
    Message.objects.create(seq=100, **fields)

    with pytest.raises(IntegrityError), transaction.atomic():
        Message.objects.create(seq=101, **fields)


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (SessionEvent, {"seq": 1000, "type": "agent:status"}),
        (CostEntry, {"message_id": "msg_1", "model": "claude-x"}),
    ],
)
def test_events_and_answers_exist_once(
    session: AgentSession, model: Any, values: dict[str, Any]
) -> None:
    model.objects.create(session=session, **values)

    with pytest.raises(IntegrityError), transaction.atomic():
        model.objects.create(session=session, **values)


def test_transcript_entries_exist_once_unless_they_have_no_id(db: None) -> None:
    values = {"project_key": "p", "sdk_session_id": "s", "entry": "{}"}
    TranscriptEntry.objects.create(uuid="u", **values)
    TranscriptEntry.objects.create(**values)
    TranscriptEntry.objects.create(**values)

    with pytest.raises(IntegrityError), transaction.atomic():
        TranscriptEntry.objects.create(uuid="u", **values)


def test_deleting_a_session_takes_its_rows(run: Run) -> None:
    factories.ask_approval(run)
    factories.return_result(run)

    run.session.delete()

    for model in (Message, Run, SessionEvent):
        assert not model.objects.exists()


def test_deleting_a_person_takes_what_is_theirs(run: Run, alice: User) -> None:
    preferences_of(alice)

    alice.delete()

    assert not AgentSession.objects.exists()
    assert not Preferences.objects.exists()


def test_texts_are_fitted_to_their_columns() -> None:
    fitted = fitting(
        Message, tool_name="n\x00" * 300, text="t\ud800" * 300, elapsed_ms=3, model=""
    )

    assert fitted == {
        "tool_name": "n\ufffd" * 100,
        "text": "t\ufffd" * 300,
        "elapsed_ms": 3,
        "model": "",
    }


@pytest.mark.database("sqlite")
@pytest.mark.django_db(transaction=True)
def test_sqlite_writes_ahead_and_checks_references() -> None:
    with connection.cursor() as cursor:
        found = [
            cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "foreign_keys", "synchronous")
        ]

    assert found == ["wal", 1, 1]


def test_rows_have_names_for_people(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run)
    names = {str(row) for row in (run, run.session, run.branch, approval, alice)}

    assert "Write (pending)" in names
    assert all(name and "object (" not in name for name in names)
