"""Tasks and tickets: kept by people on the board, and by their agents with tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from agents.errors import InvalidInputError
from agents.models import AgentSession, Task, Ticket, User
from agents.models.tasks import DESCRIPTION_CHARACTERS, TaskStatus
from agents.rendering.text import clean_text

_CHANGEABLE = ("title", "description", "status", "priority", "ticket")


@dataclass(frozen=True, slots=True)
class Column:
    """One status of the board with its tasks."""

    status: TaskStatus
    tasks: list[Task]


def create_task(
    owner: User, *, created_by_session: AgentSession | None = None, **fields: Any
) -> Task:
    """Raises: InvalidInputError naming the field."""
    task = Task(owner=owner, created_by_session=created_by_session)
    _change(task, fields)
    task.save()
    return task


def update_task(task: Task, **fields: Any) -> None:
    """Change title, description, status, priority or ticket; of others, nothing.

    Raises: InvalidInputError naming the field.
    """
    _change(task, fields)
    task.save(update_fields=[*fields, "updated_at", "completed_at"])


def complete_task(session: AgentSession, summary: str) -> Task | None:
    """The session's task is done, as its agent says; None if it has none."""
    task = session.task
    if task is None:
        return None
    task.summary = clean_text(summary)[:DESCRIPTION_CHARACTERS]
    _change(task, {"status": TaskStatus.DONE})
    task.save(update_fields=["summary", "status", "updated_at", "completed_at"])
    return task


def start_task(task: Task) -> None:
    """An agent begins with it; one that waited is in progress from now on."""
    if task.status == TaskStatus.TODO:
        update_task(task, status=TaskStatus.IN_PROGRESS)


def delete_task(task: Task) -> None:
    task.delete()


def board(owner: User) -> list[Column]:
    """Every status with its tasks, in one query."""
    found: dict[str, list[Task]] = {status: [] for status in TaskStatus}
    for task in Task.objects.visible_to(owner).select_related("ticket"):
        found[task.status].append(task)
    return [Column(status, found[status]) for status in TaskStatus]


def agent_prompt(task: Task) -> str:
    """What "Start agent" proposes as the first message."""
    if not task.description.strip():
        return task.title
    return f"{task.title}\n\n{task.description}"


@transaction.atomic
def save_ticket(ticket: Ticket) -> Ticket:
    """Raises: InvalidInputError naming the field."""
    ticket.updated_at = timezone.now()
    _check(ticket, ("key", "title", "url", "status"))
    others = Ticket.objects.filter(owner=ticket.owner_id, key=ticket.key)
    if others.exclude(pk=ticket.pk).exists():
        raise InvalidInputError("You have a ticket with this key.", field="key")
    ticket.save()
    return ticket


def delete_ticket(ticket: Ticket) -> None:
    """Its tasks and sessions stay, without it."""
    ticket.delete()


def _change(task: Task, fields: dict[str, Any]) -> None:
    unknown = set(fields) - set(_CHANGEABLE)
    assert not unknown, f"not of a task: {unknown}"
    for name, value in fields.items():
        setattr(task, name, _clean(value))
    if task.ticket is not None and task.ticket.owner_id != task.owner_id:
        raise InvalidInputError("Choose one of your tickets.", field="ticket")
    _check(task, ("title", "description", "status", "priority"))
    now = timezone.now()
    task.updated_at = now
    if task.status != TaskStatus.DONE:
        task.completed_at = None
    elif task.completed_at is None:
        task.completed_at = now


def _clean(value: Any) -> Any:
    return clean_text(value).strip() if isinstance(value, str) else value


def _check(row: Task | Ticket, names: tuple[str, ...]) -> None:
    others = {field.name for field in row._meta.concrete_fields} - set(names)
    try:
        row.clean_fields(exclude=others)
    except ValidationError as error:
        name, sentences = next(iter(error.message_dict.items()))
        raise InvalidInputError(sentences[0], field=name) from error
