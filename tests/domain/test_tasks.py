from __future__ import annotations

import pytest

from agents.domain import tasks
from agents.errors import InvalidInputError
from agents.models import Task, Ticket
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_done_task_has_its_time_and_loses_it_when_it_is_opened_again(alice):
    task = tasks.create_task(alice, title=" Count ", status="done")
    assert (task.title, task.completed_at is None) == ("Count", False)

    tasks.update_task(task, status="blocked")

    task.refresh_from_db()
    assert (task.status, task.completed_at) == ("blocked", None)


@pytest.mark.parametrize(
    ("field", "value"),
    [("title", ""), ("title", "x" * 201), ("status", "lost"), ("priority", "huge")],
)
def test_what_is_not_valid_is_refused_by_its_field(alice, field, value):
    with pytest.raises(InvalidInputError) as refused:
        tasks.create_task(alice, **{"title": "Count", field: value})

    assert refused.value.field == field
    assert not Task.objects.exists()


def test_a_ticket_of_somebody_else_is_no_choice(alice, bob):
    ticket = Ticket.objects.create(owner=bob, key="B-1", title="Bob's")

    with pytest.raises(InvalidInputError) as refused:
        tasks.create_task(alice, title="Count", ticket=ticket)

    assert refused.value.field == "ticket"


def test_a_ticket_key_is_used_once(alice):
    tasks.save_ticket(Ticket(owner=alice, key="A-1", title="One"))

    with pytest.raises(InvalidInputError) as refused:
        tasks.save_ticket(Ticket(owner=alice, key="A-1", title="Two"))

    assert refused.value.field == "key"


def test_an_agent_that_starts_takes_its_task_up_and_completes_it(alice):
    task = tasks.create_task(alice, title="Count")
    session = factories.make_session(alice, linked_task=task)
    task.refresh_from_db()
    assert (session.task, task.status) == (task, "in_progress")

    tasks.complete_task(session, "Counted.")

    task.refresh_from_db()
    assert (task.status, task.summary) == ("done", "Counted.")
    assert task.completed_at is not None


def test_a_session_without_a_task_completes_none(session):
    assert tasks.complete_task(session, "Done") is None


def test_the_board_has_every_status_in_one_query(alice, bob, django_assert_num_queries):
    task = tasks.create_task(alice, title="Count", status="blocked")
    tasks.create_task(bob, title="Bob's")

    with django_assert_num_queries(1):
        columns = {column.status: column.tasks for column in tasks.board(alice)}

    assert columns == {
        "todo": [],
        "in_progress": [],
        "blocked": [task],
        "done": [],
        "cancelled": [],
    }


def test_sessions_outlive_their_task(alice):
    task = tasks.create_task(alice, title="Count")
    session = factories.make_session(alice, linked_task=task)

    tasks.delete_task(task)

    session.refresh_from_db()
    assert session.task is None
