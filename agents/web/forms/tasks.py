"""Tasks and tickets as people write them, and choosing one for a new agent."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms

from agents.domain.tasks import agent_prompt
from agents.models import Task, Ticket, User
from agents.models.tasks import (
    DESCRIPTION_CHARACTERS,
    TITLE_CHARACTERS,
    TaskPriority,
    TaskStatus,
)

from .fields import CleanTextField, RowField


class TaskForm(forms.Form):
    title = CleanTextField(
        max_length=TITLE_CHARACTERS,
        error_messages={"required": "Say what is to be done."},
    )
    description = CleanTextField(
        required=False,
        max_length=DESCRIPTION_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text="What is to be done, and how one sees that it is.",
    )
    status = forms.ChoiceField(choices=TaskStatus.choices)
    priority = forms.ChoiceField(choices=TaskPriority.choices)
    ticket = RowField(
        queryset=Ticket.objects.none(), required=False, empty_label="No ticket"
    )

    def __init__(
        self, *args: Any, user: User, task: Task | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        _offer(self, "ticket", Ticket.objects.visible_to(user))
        if task is None:
            self.initial = {
                "status": TaskStatus.TODO,
                "priority": TaskPriority.NORMAL,
                **self.initial,
            }
        else:
            self.initial = {name: getattr(task, name) for name in self.fields}


class MoveForm(forms.Form):
    status = forms.ChoiceField(choices=TaskStatus.choices)


class TicketForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    key = CleanTextField(max_length=60, help_text="As the tracker names it: KEY-12.")
    title = CleanTextField(max_length=TITLE_CHARACTERS)
    url = forms.URLField(
        label="Address", required=False, max_length=1000, assume_scheme="https"
    )
    status = CleanTextField(
        required=False, max_length=60, help_text="In the tracker’s own words."
    )

    class Meta:
        model = Ticket
        fields = ["key", "title", "url", "status"]


def linked_task_field() -> RowField:
    return RowField(
        label="From the board",
        queryset=Task.objects.none(),
        required=False,
        empty_label="None",
    )


def linked_ticket_field() -> RowField:
    return RowField(
        label="Ticket",
        queryset=Ticket.objects.none(),
        required=False,
        empty_label="None, or the task’s",
    )


def offer_links(form: forms.Form, user: User) -> None:
    """Let the form's link fields name what is the person's own."""
    _offer(form, "linked_task", Task.objects.visible_to(user).select_related(None))
    _offer(form, "linked_ticket", Ticket.objects.visible_to(user))


def prefill(user: User, query: Any) -> dict[str, Any]:
    """What "Start agent on this" carries into the form; what isn't there, nothing."""
    task = _find(Task.objects.visible_to(user), query.get("task"))
    ticket = _find(Ticket.objects.visible_to(user), query.get("ticket"))
    initial: dict[str, Any] = {}
    if ticket is not None:
        initial |= {"linked_ticket": ticket.pk, "task": str(ticket)}
    if task is not None:
        initial |= {"linked_task": task.pk, "task": agent_prompt(task)}
    return initial


def _find(rows: Any, text: str | None) -> Any:
    try:
        return rows.filter(pk=UUID(text or "")).first()
    except ValueError:
        return None


def _offer(form: forms.Form, name: str, rows: Any) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ModelChoiceField)
    field.queryset = rows
