"""Sessions: the list, "New agent", and the page of one session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.domain import runs, sessions, workspaces
from agents.domain.locks import check_is_no_sub_agent
from agents.domain.providers import default_provider
from agents.domain.queries.sessions import (
    LIST_PAGE_SIZE,
    SessionGroups,
    current_seq,
    load_groups,
    load_page,
    resting_sessions,
)
from agents.domain.queries.spots import Spot, find_spot
from agents.domain.queries.transcript import Transcript, load_transcript
from agents.domain.sharing import sharing_of
from agents.errors import InvalidInputError, NotAllowedError
from agents.models import AgentSession, User
from agents.models.providers import ProviderKind
from agents.web.forms.messages import ComposerForm
from agents.web.forms.places import PlaceForm
from agents.web.forms.sessions import (
    NewAgentForm,
    PinForm,
    RenameForm,
    SessionSettingsForm,
)
from agents.web.forms.tasks import prefill
from agents.web.http import (
    HtmxRequest,
    apply_form,
    came_from,
    htmx_redirect,
    respond,
    wants_fragment,
)


@require_GET
def session_list(request: HtmxRequest) -> HttpResponse:
    pages = Paginator(resting_sessions(request.user), LIST_PAGE_SIZE)
    page = pages.get_page(request.GET.get("page"))
    is_first = page.number == 1
    groups = (
        load_groups(request.user)
        if is_first
        else SessionGroups(running=[], pinned=[], recent=list(page))
    )
    context = {"groups": groups, "page_obj": page, "is_live": is_first}
    return render(request, "agents/sessions/list.html", context)


@require_http_methods(["GET", "POST"])
def session_new(request: HtmxRequest) -> HttpResponse:
    if not request.user.may_start_agents:
        raise NotAllowedError("Viewers can look at agents, but not start them.")
    data = request.POST if request.method == "POST" else None
    initial = prefill(request.user, request.GET)
    form = NewAgentForm(data, request.FILES or None, user=request.user, initial=initial)
    if data is not None:
        launched = apply_form(
            form, lambda: sessions.launch_agent(request.user, form.to_config())
        )
        if launched is not None:
            return htmx_redirect(request, _address(launched))
    return render_new_agent(request, form)


def render_new_agent(request: HtmxRequest, form: NewAgentForm) -> HttpResponse:
    scripted = default_provider(request.user).kind == ProviderKind.DEMO
    return respond(
        request,
        "agents/sessions/new.html",
        "agents/sessions/_new_form.html",
        {"form": form, "is_scripted": scripted},
        status=422 if form.errors else 200,
    )


@require_GET
def session_detail(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    """The newest page of the shown version, or the one that the query leads to."""
    session = find_session(request, session_id)
    place = PlaceForm(request.GET)
    spot = find_spot(session, branch_id=place.branch_id, message_id=place.message_id)
    return render_session(request, session, spot=spot)


@require_GET
def session_older(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    """The page of the transcript before `?before=<seq>`."""
    session = find_session(request, session_id)
    before = _number(request.GET.get("before"))
    branch_id = PlaceForm(request.GET).branch_id
    spot = find_spot(session, branch_id=branch_id) or Spot(session=session)
    spot = replace(spot, before_seq=before)
    if not wants_fragment(request):
        return render_session(request, session, spot=spot)
    context = {"session": session, "transcript": _transcript_at(spot, request.user)}
    return render(request, "agents/sessions/_items.html", context)


@require_POST
def session_stop(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    runs.stop_agent(session)
    return respond_with_parts(request, session, "actions", "tail", "status")


@require_POST
def session_retry(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    runs.retry_last_run(session)
    return respond_with_parts(request, session, "tail", "actions", "status")


@require_POST
def session_continue(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    runs.continue_session(session)
    return respond_with_parts(request, session, "tail", "actions", "status")


@require_POST
def session_rename(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    form = RenameForm(request.POST)
    apply_form(
        form, lambda: sessions.rename_session(session, form.cleaned_data["name"])
    )
    if form.is_valid():
        return respond_with_parts(request, session, "title")
    if not wants_fragment(request):
        return render_session(request, session, status=422, title_form=form)
    context = {"page": load_page(session, request.user), "form": form}
    return render(request, "agents/sessions/_title.html", context, status=422)


@require_POST
def session_settings(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    form = SessionSettingsForm(request.POST, session=session, user=request.user)
    if form.is_valid():
        apply_form(
            form,
            lambda: sessions.update_session(session, request.user, **form.cleaned_data),
        )
    status = 200 if form.is_valid() else 422
    if wants_fragment(request):
        page = load_page(_fresh(session), request.user)
        context = {"page": page, "form": form, "is_saved": form.is_valid()}
        return render(
            request, "agents/sessions/_settings_saved.html", context, status=status
        )
    if form.is_valid():
        messages.success(request, "The settings are saved.")
        return redirect(_address(session))
    return render_session(request, session, status=422, settings_form=form)


@require_POST
def session_close(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    sessions.close_session(session, request.user)
    messages.success(request, f"{session.name} is closed. You can resume it.")
    return htmx_redirect(request, "/")


@require_POST
def session_resume(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    """To the session, which is where one goes on."""
    session = find_operable(request, session_id)
    sessions.resume_session(session, request.user)
    return htmx_redirect(request, _address(session))


@require_POST
def session_pin(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    form = PinForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError("Say whether to pin it.", field="pinned")
    sessions.pin_session(session, pinned=form.cleaned_data["pinned"])
    return htmx_redirect(request, came_from(request, _address(session)))


@require_http_methods(["GET", "POST"])
def session_delete(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    """A page that asks, then the deed."""
    session = find_operable(request, session_id)
    if session.owner_id != request.user.pk:
        raise NotAllowedError("Only its owner may delete a session.")
    if request.method == "POST":
        sessions.delete_session(session, request.user)
        messages.success(request, f"{session.name} is deleted.")
        return htmx_redirect(request, "/")
    context = {
        "session": session,
        "child_count": session.children.count(),
        "worktree": workspaces.look_at_worktree(session),
    }
    return render(request, "agents/sessions/delete.html", context)


def find_session(request: HtmxRequest, session_id: UUID) -> AgentSession:
    """A session that this person may see; to all others it doesn't exist."""
    visible = AgentSession.objects.visible_to(request.user)
    found = visible.select_related("owner", "provider", "host_session")
    return get_object_or_404(found, pk=session_id)


def find_operable(request: HtmxRequest, session_id: UUID) -> AgentSession:
    """Raises: Http404 to strangers, NotAllowedError to those who may only look;
    SubAgentError, since nothing is done to a sub-agent but through its host.
    """
    session = find_session(request, session_id)
    if not may_operate(request, session):
        raise NotAllowedError("You may look at this session, but not change it.")
    check_is_no_sub_agent(session)
    return session


def may_operate(request: HtmxRequest, session: AgentSession) -> bool:
    operable = AgentSession.objects.operable_by(request.user)
    return operable.filter(pk=session.pk).exists()


def render_session(
    request: HtmxRequest,
    session: AgentSession,
    *,
    status: int = 200,
    spot: Spot | None = None,
    **forms: Any,
) -> HttpResponse:
    """The whole page; `forms` holds those that were sent and refused."""
    user = request.user
    spot = spot or Spot(session=session)
    context = {
        "session": session,
        "page": load_page(session, user),
        "spot": spot,
        "transcript": _transcript_at(spot, user),
        "sharing": sharing_of(session, user),
        "live_seq": _seq_of(session),
        "composer_form": ComposerForm(user=user, session=session),
        "settings_form": SessionSettingsForm(session=session, user=user),
        **forms,
    }
    return render(request, "agents/sessions/detail.html", context, status=status)


def _transcript_at(spot: Spot, user: User) -> Transcript:
    transcript = load_transcript(spot.session, user, before_seq=spot.before_seq)
    if spot.is_shown:
        return transcript
    return replace(transcript, other_branch_id=spot.branch_id)


def _seq_of(session: AgentSession) -> int | None:
    """The seq of a page that was just read; None where something happened meanwhile."""
    seq = session.shown_seq
    return seq if seq == current_seq(session.host_id) else None


def respond_with_parts(
    request: HtmxRequest, session: AgentSession, *parts: str
) -> HttpResponse:
    """For htmx the first part, and the others by their ids; else the page again."""
    if not wants_fragment(request):
        return redirect(_address(session))
    page = load_page(_fresh(session), request.user)
    return render(
        request, "agents/sessions/_parts.html", {"page": page, "parts": parts}
    )


def _fresh(session: AgentSession) -> AgentSession:
    session.refresh_from_db()
    return session


def _address(session: AgentSession) -> str:
    return f"/sessions/{session.pk}/"


def _number(value: str | None) -> int:
    if value is None or not value.isdecimal() or len(value) > 18:
        raise Http404
    return int(value)
