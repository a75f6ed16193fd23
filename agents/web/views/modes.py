"""Modes: the list, and those of one's own: new, like another, changed, deleted."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.domain import modes
from agents.domain.queries.modes import load_modes
from agents.errors import InvalidInputError, NotAllowedError
from agents.models import Mode
from agents.web.forms.modes import ModeForm
from agents.web.http import HtmxRequest, apply_form, submitted


@require_GET
def mode_list(request: HtmxRequest) -> HttpResponse:
    context = {"rows": load_modes(request.user)}
    return render(request, "agents/modes/list.html", context)


@require_http_methods(["GET", "POST"])
def mode_new(request: HtmxRequest) -> HttpResponse:
    """An empty one, or with `?like=` a copy of one that the person sees."""
    if not request.user.may_start_agents:
        raise NotAllowedError("Viewers have no agents that could work in a mode.")
    mode = Mode(owner=request.user)
    if "like" in request.GET:
        mode = modes.copy_of(_find_visible(request), request.user)
    return _edit(request, mode)


@require_http_methods(["GET", "POST"])
def mode_edit(request: HtmxRequest, mode_id: UUID) -> HttpResponse:
    return _edit(request, _find(request, mode_id))


def _edit(request: HtmxRequest, mode: Mode) -> HttpResponse:
    name = "" if mode._state.adding else mode.name
    form = ModeForm(submitted(request), mode=mode, user=request.user)
    saved = apply_form(form, lambda: modes.save_mode(form.apply(), request.user))
    if saved is not None:
        messages.success(request, f"The mode “{saved.name}” is saved.")
        return redirect("mode_list")
    context = {
        "form": form,
        "mode": mode if name else None,
        "name": name,
        "use": modes.find_use(mode) if name else "",
    }
    status = 422 if form.errors else 200
    return render(request, "agents/modes/edit.html", context, status=status)


@require_POST
def mode_delete(request: HtmxRequest, mode_id: UUID) -> HttpResponse:
    mode = _find(request, mode_id)
    try:
        modes.delete_mode(mode, request.user)
    except InvalidInputError as error:
        messages.error(request, error.user_message)
        return redirect("mode_edit", mode_id)
    messages.success(request, f"The mode “{mode.name}” is deleted.")
    return redirect("mode_list")


def _find(request: HtmxRequest, mode_id: UUID) -> Mode:
    return get_object_or_404(Mode.objects.editable_by(request.user), pk=mode_id)


def _find_visible(request: HtmxRequest) -> Mode:
    try:
        mode_id = UUID(request.GET["like"])
    except ValueError:
        raise Http404 from None
    return get_object_or_404(Mode.objects.visible_to(request.user), pk=mode_id)
