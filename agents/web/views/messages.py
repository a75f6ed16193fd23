"""Messages: sending, showing in full, taking out of the queue."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages as flash
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from agents.domain import messages
from agents.domain.attachments import attachments_of
from agents.domain.queries.sessions import load_page
from agents.domain.queries.transcript import load_message
from agents.models import AgentSession, Message
from agents.web.forms.messages import ComposerForm, MoveForm, QueuedForm
from agents.web.http import HtmxRequest, apply_form, respond, wants_fragment

from .sessions import find_operable, find_session, render_session


@require_POST
def message_send(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    user = request.user
    form = ComposerForm(request.POST, request.FILES, user=user, session=session)
    sent = apply_form(form, lambda: _send(request, session, form))
    if not wants_fragment(request):
        if sent is None:
            return render_session(request, session, status=422, composer_form=form)
        return redirect("session_detail", session_id)
    if sent is None:
        refused = {"form": form}
        return render(request, "agents/messages/_errors.html", refused, status=422)
    session.refresh_from_db()
    fresh = ComposerForm(user=user, session=session)
    context = {"page": load_page(session, user), "form": fresh}
    return render(request, "agents/messages/_sent.html", context)


def _send(request: HtmxRequest, session: AgentSession, form: ComposerForm) -> Message:
    """Send once; changed words under an id that was used are a message of their own."""
    text = form.cleaned_data["text"]
    client_message_id = form.cleaned_data["client_message_id"]
    attachments = attachments_of(form.chosen, session=session)
    model = form.cleaned_data["model"]
    sent = messages.send_message(
        session,
        author=request.user,
        text=text,
        client_message_id=client_message_id,
        attachments=attachments,
        model=model,
    )
    if sent.text == messages.clean_prompt(text):
        return sent
    return messages.send_message(
        session, author=request.user, text=text, attachments=attachments, model=model
    )


@require_GET
def message_show(request: HtmxRequest, message_id: UUID) -> HttpResponse:
    item = load_message(request.user, message_id)
    if item is None:
        raise Http404
    return respond(
        request,
        "agents/messages/show.html",
        item.template,
        {"item": item, "session": item.message.session},
    )


@require_POST
def message_requeue(request: HtmxRequest, message_id: UUID) -> HttpResponse:
    """Other words for a message that still waits."""
    message, session = _find_queued(request, message_id)
    form = QueuedForm(request.POST, message=message)
    changed = apply_form(
        form,
        lambda: messages.edit_queued_message(message, form.cleaned_data["text"]),
    )
    if form.errors:
        return _show_refused(request, session, form)
    return _show_queue(request, session, has_worked=bool(changed))


@require_POST
def message_move(request: HtmxRequest, message_id: UUID) -> HttpResponse:
    """Send a queued message now, move it up or down, or take it out."""
    message, session = _find_queued(request, message_id)
    form = MoveForm(request.POST)
    if not form.is_valid():
        raise Http404
    has_worked = _MOVES[form.cleaned_data["action"]](message)
    return _show_queue(request, session, has_worked=has_worked)


_MOVES: dict[str, Callable[[Message], bool]] = {
    "now": messages.send_now,
    "up": lambda message: messages.move_queued_message(message, steps=-1),
    "down": lambda message: messages.move_queued_message(message, steps=1),
    "remove": messages.remove_queued_message,
}


@require_POST
def queue_resume(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    messages.resume_queue(session)
    return _show_queue(request, session, has_worked=True)


def _find_queued(
    request: HtmxRequest, message_id: UUID
) -> tuple[Message, AgentSession]:
    visible = Message.objects.visible_to(request.user).exclude(queued_at=None)
    message = get_object_or_404(visible, pk=message_id)
    return message, find_operable(request, message.session_id)


def _show_refused(
    request: HtmxRequest, session: AgentSession, form: QueuedForm
) -> HttpResponse:
    """The queue with what was typed, and what is wrong with it."""
    session = find_session(request, session.pk)
    if not wants_fragment(request):
        return render_session(request, session, status=422, queue_form=form)
    context = {"page": load_page(session, request.user), "queue_form": form}
    return render(request, "agents/messages/_queue.html", context, status=422)


def _show_queue(
    request: HtmxRequest, session: AgentSession, *, has_worked: bool
) -> HttpResponse:
    if not wants_fragment(request):
        if not has_worked:
            flash.warning(request, "It was delivered already.")
        return redirect("session_detail", session.pk)
    page = load_page(find_session(request, session.pk), request.user)
    return render(request, "agents/messages/_queue.html", {"page": page})
