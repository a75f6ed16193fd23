"""The board of tasks, each task, and the tickets that tasks serve."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.domain import tasks
from agents.errors import InvalidInputError
from agents.models import AgentSession, Task, Ticket
from agents.models.tasks import TaskStatus
from agents.web.forms.tasks import MoveForm, TaskForm, TicketForm
from agents.web.http import HtmxRequest, apply_form, came_from, submitted


@require_GET
def task_list(request: HtmxRequest) -> HttpResponse:
    """The board, or with `?view=list` one table."""
    columns = tasks.board(request.user)
    context = {
        "columns": columns,
        "has_tasks": any(column.tasks for column in columns),
        "is_list": request.GET.get("view") == "list",
        "statuses": TaskStatus.choices,
    }
    return render(request, "agents/tasks/list.html", context)


@require_http_methods(["GET", "POST"])
def task_new(request: HtmxRequest) -> HttpResponse:
    form = TaskForm(submitted(request), user=request.user)
    made = apply_form(
        form, lambda: tasks.create_task(request.user, **form.cleaned_data)
    )
    if made is not None:
        messages.success(request, f"{made.title} is on the board.")
        return redirect("task_list")
    return _show_form(request, form, None)


@require_GET
def task_detail(request: HtmxRequest, task_id: UUID) -> HttpResponse:
    task = _task(request, task_id)
    visible = AgentSession.objects.visible_to(request.user)
    context = {
        "task": task,
        "sessions": visible.filter(task=task).recent_first(),
        "statuses": TaskStatus.choices,
    }
    return render(request, "agents/tasks/detail.html", context)


@require_http_methods(["GET", "POST"])
def task_edit(request: HtmxRequest, task_id: UUID) -> HttpResponse:
    task = _task(request, task_id)
    form = TaskForm(submitted(request), user=request.user, task=task)

    def save() -> bool:
        tasks.update_task(task, **form.cleaned_data)
        return True

    if apply_form(form, save):
        messages.success(request, "The task is saved.")
        return redirect("task_detail", task.pk)
    return _show_form(request, form, task)


@require_POST
def task_move(request: HtmxRequest, task_id: UUID) -> HttpResponse:
    task = _task(request, task_id)
    form = MoveForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError("Choose one of the board’s columns.", field="status")
    tasks.update_task(task, status=form.cleaned_data["status"])
    messages.success(request, f"{task.title}: {task.get_status_display()}.")
    return redirect(came_from(request, reverse("task_list")))


@require_POST
def task_delete(request: HtmxRequest, task_id: UUID) -> HttpResponse:
    task = _task(request, task_id)
    tasks.delete_task(task)
    messages.success(request, f"{task.title} is deleted.")
    return redirect("task_list")


@require_http_methods(["GET", "POST"])
def ticket_list(request: HtmxRequest) -> HttpResponse:
    return _edit_ticket(request, Ticket(owner=request.user))


@require_http_methods(["GET", "POST"])
def ticket_edit(request: HtmxRequest, ticket_id: UUID) -> HttpResponse:
    return _edit_ticket(request, _ticket(request, ticket_id))


@require_POST
def ticket_delete(request: HtmxRequest, ticket_id: UUID) -> HttpResponse:
    ticket = _ticket(request, ticket_id)
    tasks.delete_ticket(ticket)
    messages.success(request, f"{ticket.key} is deleted. Its tasks stay.")
    return redirect("ticket_list")


def _edit_ticket(request: HtmxRequest, ticket: Ticket) -> HttpResponse:
    is_new = ticket._state.adding
    form = TicketForm(submitted(request), instance=ticket)
    saved = apply_form(form, lambda: tasks.save_ticket(form.instance))
    if saved is not None:
        messages.success(request, f"{saved.key} is saved.")
        return redirect("ticket_list")
    context = {
        "form": form,
        "ticket": None if is_new else ticket,
        "tickets": Ticket.objects.visible_to(request.user) if is_new else [],
    }
    status = 422 if form.is_bound else 200
    return render(request, "agents/tasks/tickets.html", context, status=status)


def _show_form(request: HtmxRequest, form: TaskForm, task: Task | None) -> HttpResponse:
    context = {"form": form, "task": task}
    status = 422 if form.is_bound else 200
    return render(request, "agents/tasks/edit.html", context, status=status)


def _task(request: HtmxRequest, task_id: UUID) -> Task:
    mine = Task.objects.visible_to(request.user)
    found = mine.select_related("ticket", "owner", "created_by_session")
    return get_object_or_404(found, pk=task_id)


def _ticket(request: HtmxRequest, ticket_id: UUID) -> Ticket:
    return get_object_or_404(Ticket.objects.visible_to(request.user), pk=ticket_id)
