"""Branches: editing and answering anew, switching, comparing."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages as flash
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import (
    require_GET,
    require_http_methods,
    require_POST,
)

from agents.domain import branches, changes
from agents.domain.changes import Changes
from agents.domain.duplicates import duplicate_session
from agents.domain.queries.comparison import Side, load_comparison
from agents.domain.queries.sessions import load_page
from agents.domain.queries.transcript import load_message
from agents.domain.sharing import sharing_of
from agents.domain.snapshots import RESTORE_FLAG, preview_restore_before
from agents.models import AgentSession, Message, MessageBranch
from agents.models.messages import MessageRole
from agents.web.forms.messages import EditForm
from agents.web.http import (
    HtmxRequest,
    apply_form,
    htmx_redirect,
    respond,
    wants_fragment,
)

from .sessions import find_operable, find_session


@require_http_methods(["GET", "POST"])
def message_edit(request: HtmxRequest, message_id: UUID) -> HttpResponse:
    message = _find_message(request, message_id)
    if message.role != MessageRole.USER:
        raise Http404
    if request.method == "GET":
        form = EditForm(initial={"text": message.text})
        return _show_form(request, message, form, status=200)
    form = EditForm(request.POST)
    if apply_form(form, lambda: _edit(request, message, form)) is None:
        return _show_form(request, message, form, status=422)
    return _show_branch(request, message.session)


def _edit(request: HtmxRequest, message: Message, form: EditForm) -> Message:
    attachments = dict(message.attachments)
    attachments.pop(RESTORE_FLAG, None)  # each edit asks anew
    if form.cleaned_data["restore_files"]:
        attachments[RESTORE_FLAG] = True
    return branches.edit_message(
        message,
        author=request.user,
        text=form.cleaned_data["text"],
        client_message_id=form.cleaned_data["client_message_id"],
        attachments=attachments,
    )


def _show_form(
    request: HtmxRequest, message: Message, form: EditForm, *, status: int
) -> HttpResponse:
    context = {
        "form": form,
        "item": load_message(request.user, message.pk),
        "session": message.session,
        "preview": changes.look(lambda: preview_restore_before(message)),
        "sharing": sharing_of(message.session, request.user),
    }
    return respond(
        request,
        "agents/messages/edit.html",
        "agents/messages/_edit.html",
        context,
        status=status,
    )


def _show_branch(request: HtmxRequest, session: AgentSession) -> HttpResponse:
    """The transcript itself comes over the socket, to every tab alike."""
    if not wants_fragment(request):
        return redirect("session_detail", session.pk)
    page = load_page(find_session(request, session.pk), request.user)
    return render(request, "agents/sessions/_branched.html", {"page": page})


@require_POST
def message_regenerate(request: HtmxRequest, message_id: UUID) -> HttpResponse:
    message = _find_message(request, message_id)
    branches.regenerate(message, author=request.user)
    return _show_branch(request, message.session)


@require_POST
def message_duplicate(request: HtmxRequest, message_id: UUID) -> HttpResponse:
    """ "Branch to new session": a copy that ends with this message."""
    message = _find_message(request, message_id)
    copy = duplicate_session(message.session, request.user, up_to=message)
    return _show_copy(request, copy, "up to the message that you chose")


@require_POST
def session_duplicate(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    copy = duplicate_session(session, request.user)
    return _show_copy(request, copy, "with all of the version that was shown")


def _show_copy(request: HtmxRequest, copy: AgentSession, what: str) -> HttpResponse:
    flash.success(request, f"This is a copy, {what}. The agent remembers it.")
    return htmx_redirect(request, reverse("session_detail", args=[copy.pk]))


@require_POST
def branch_switch(request: HtmxRequest, branch_id: UUID) -> HttpResponse:
    branch = _find_branch(request, branch_id)
    session = find_operable(request, branch.session_id)
    branches.switch_branch(session, branch)
    return _show_branch(request, session)


@require_GET
def branch_compare(request: HtmxRequest, branch_id: UUID) -> HttpResponse:
    """Two branches side by side, from where they part; `?with=` names the other."""
    branch = _find_branch(request, branch_id)
    session = find_session(request, branch.session_id)
    others = session.branches.exclude(pk=branch.pk)
    wanted = request.GET.get("with", "")
    other = next((each for each in others if str(each.pk) == wanted), None)
    if other is None:
        raise Http404
    comparison = load_comparison(session, request.user, branch, other)
    context = {
        "session": session,
        "comparison": comparison,
        "left_changes": _changes_of(comparison.left),
        "right_changes": _changes_of(comparison.right),
    }
    return render(request, "agents/branches/compare.html", context)


def _changes_of(side: Side) -> Changes:
    """What a side did to the files since the two part."""
    if not side.items:
        return Changes([])
    first = side.items[0].message
    return changes.look(lambda: changes.diff_since(side.branch, first.seq))


def _find_message(request: HtmxRequest, message_id: UUID) -> Message:
    visible = Message.objects.visible_to(request.user).select_related("branch")
    message = get_object_or_404(visible, pk=message_id, hidden=False)
    message.session = find_operable(request, message.session_id)
    return message


def _find_branch(request: HtmxRequest, branch_id: UUID) -> MessageBranch:
    return get_object_or_404(
        MessageBranch.objects.visible_to(request.user), pk=branch_id
    )
