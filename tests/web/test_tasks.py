"""Tasks: the board, a task's page, tickets, and an agent that is started on one."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from agents.domain import tasks
from agents.models import AgentSession, Task, Ticket, User
from tests import factories
from tests.dom import parse
from tests.people import browser

pytestmark = pytest.mark.django_db
FORM = {"title": "Count", "description": "All", "status": "todo", "priority": "high"}


@pytest.fixture
def client(alice: User) -> Client:
    return browser(alice)


@pytest.fixture
def ticket(alice: User) -> Ticket:
    return Ticket.objects.create(owner=alice, key="BEE-1", title="Bees")


@pytest.fixture
def task(alice: User, ticket: Ticket) -> Task:
    return tasks.create_task(alice, title="Count", description="All", ticket=ticket)


def test_an_empty_board_says_what_to_do(client: Client) -> None:
    assert "No tasks yet" in parse(client.get("/tasks/").text).words


def test_a_task_is_written_down(client: Client, alice: User, ticket: Ticket) -> None:
    answer = client.post("/tasks/new/", {**FORM, "ticket": ticket.pk})

    assert answer["Location"] == reverse("task_list")
    task = Task.objects.get()
    assert (task.owner, task.title, task.priority) == (alice, "Count", "high")
    assert task.ticket == ticket


def test_a_task_without_a_title_comes_back_as_it_was_typed(client: Client) -> None:
    answer = client.post("/tasks/new/", {**FORM, "title": " \u200b"})

    assert answer.status_code == 422
    assert "Say what is to be done." in answer.text
    assert not Task.objects.exists()


def test_the_board_shows_each_task_in_its_column(client: Client, task: Task) -> None:
    page = parse(client.get("/tasks/").text)
    columns = [section.words for section in page.find_all("section")]

    assert columns[0].startswith("To do 1 Count BEE-1")
    assert columns[3].startswith("Done 0")
    listed = parse(client.get("/tasks/?view=list").text)
    assert listed.find_all("tbody")[0].words.startswith("Count")


def test_a_card_is_moved_by_its_form(client: Client, task: Task) -> None:
    answer = client.post(f"/tasks/{task.pk}/move/", {"status": "done"})

    task.refresh_from_db()
    assert answer["Location"] == reverse("task_list")
    assert (task.status, task.completed_at is None) == ("done", False)


def test_a_column_that_is_none_is_refused(client: Client, task: Task) -> None:
    answer = client.post(f"/tasks/{task.pk}/move/", {"status": "lost"})

    task.refresh_from_db()
    assert (answer.status_code, task.status) == (422, "todo")


def test_a_task_is_changed_and_deleted(client: Client, task: Task) -> None:
    client.post(f"/tasks/{task.pk}/edit/", {**FORM, "title": "Feed"})
    task.refresh_from_db()
    assert (task.title, task.ticket) == ("Feed", None)

    client.post(f"/tasks/{task.pk}/delete/")
    assert not Task.objects.exists()


def test_an_agent_is_started_on_a_task(client: Client, task: Task) -> None:
    page = parse(client.get(f"/tasks/{task.pk}/").text)
    [link] = [a for a in page.find_all("a") if a.words == "Start agent on this task"]
    form = parse(client.get(link.attributes["href"]).text)
    [text] = form.find_all("textarea")[:1]
    assert text.text.strip() == "Count\n\nAll"

    answer = client.post(
        "/sessions/new/",
        {
            "task": "Count\n\nAll",
            "mode": "agent",
            "effort": "medium",
            "security_mode": "ask",
            "network": "none",
            "linked_task": task.pk,
        },
    )

    session = AgentSession.objects.get(pk=UUID(answer["Location"].split("/")[2]))
    task.refresh_from_db()
    assert (session.task, task.status) == (task, "in_progress")
    assert "Task Count" in parse(client.get(answer["Location"]).text).words
    assert session.name in client.get(f"/tasks/{task.pk}/").text


def test_somebody_elses_task_is_no_choice(
    client: Client, task: Task, bob: User
) -> None:
    form = parse(browser(bob).get(f"/sessions/new/?task={task.pk}").text)

    assert form.find_all("textarea")[0].text.strip() == ""
    assert str(task.pk) not in str(form.find_all("option"))
    assert client.get("/sessions/new/?task=nonsense").status_code == 200


def test_who_shares_a_session_is_not_shown_its_task(
    task: Task, alice: User, bob: User
) -> None:
    session = factories.make_session(alice, linked_task=task)
    session.shares.create(user=bob, right="operate")
    page = f"/sessions/{session.pk}/"

    assert f"/tasks/{task.pk}/" in browser(alice).get(page).text, "the control"
    assert f"/tasks/{task.pk}/" not in browser(bob).get(page).text


def test_tickets_are_added_changed_and_deleted(client: Client, alice: User) -> None:
    form = {"key": "A-1", "title": "One", "url": "https://x.example/1", "status": "new"}
    client.post("/tasks/tickets/", form)
    ticket = Ticket.objects.get()
    assert (ticket.owner, str(ticket)) == (alice, "A-1: One")

    twice = client.post("/tasks/tickets/", form)
    assert twice.status_code == 422
    assert "You have a ticket with this key." in twice.text

    bad = client.post(
        f"/tasks/tickets/{ticket.pk}/", {**form, "url": "javascript:alert(1)"}
    )
    assert bad.status_code == 422
    client.post(f"/tasks/tickets/{ticket.pk}/", {**form, "title": "Two"})
    ticket.refresh_from_db()
    assert ticket.title == "Two"

    client.post(f"/tasks/tickets/{ticket.pk}/delete/")
    assert not Ticket.objects.exists()
