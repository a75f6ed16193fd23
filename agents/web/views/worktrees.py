"""Worktrees: how far a session's checkout is, and giving it up."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages as flash
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from agents.domain import changes, workspaces
from agents.domain.workspaces import WorktreeLook
from agents.models import AgentSession
from agents.web.forms.worktrees import DiscardForm
from agents.web.http import HtmxRequest, htmx_redirect, submitted

from .sessions import find_operable, find_session, may_operate


@require_GET
def session_worktree(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_session(request, session_id)
    look = _look(session)
    context = {
        "session": session,
        "look": look,
        "can_operate": may_operate(request, session),
        "changes": changes.look(lambda: workspaces.diff_of_worktree(session))
        if look.status
        else None,
    }
    return render(request, "agents/worktrees/show.html", context)


@require_http_methods(["GET", "POST"])
def worktree_discard(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    """A page that says what is lost, then the deed; it asks anew if more would be."""
    session = find_operable(request, session_id)
    look = _look(session)
    if look.status is None:
        raise Http404
    form = DiscardForm(submitted(request), status=look.status)
    if form.is_valid():
        workspaces.discard_worktree(
            session, request.user, force=look.status.has_unsaved_work
        )
        flash.success(
            request, "The worktree is discarded. The next turn makes a new one."
        )
        return htmx_redirect(request, reverse("session_detail", args=[session.pk]))
    context = {"session": session, "status": look.status, "form": form}
    status = 409 if form.errors else 200
    return render(request, "agents/worktrees/discard.html", context, status=status)


def _look(session: AgentSession) -> WorktreeLook:
    look = workspaces.look_at_worktree(session)
    if look is None:
        raise Http404
    return look
