"""The history: search, export and import of sessions."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.http import Http404, HttpResponse
from django.utils.text import slugify
from django.views.decorators.http import require_GET, require_POST

from agents.domain.export import export_json
from agents.domain.export_markdown import export_markdown
from agents.domain.history import PAGE_SIZE, HistoryPage, get_history
from agents.domain.importing import import_session
from agents.domain.locks import check_is_no_sub_agent
from agents.models import AgentSession
from agents.web.forms.history import HistoryForm, ImportForm
from agents.web.http import HtmxRequest, apply_form, htmx_redirect, respond

from .sessions import find_session

_FORMATS = {
    "markdown": (export_markdown, "text/markdown; charset=utf-8", "md"),
    "json": (export_json, "application/json", "json"),
}
_LAST_PAGE = 1_000_000


@require_GET
def history(request: HtmxRequest) -> HttpResponse:
    return _render(request, ImportForm())


@require_POST
def session_import(request: HtmxRequest) -> HttpResponse:
    form = ImportForm(request.POST, request.FILES)
    session = apply_form(
        form,
        lambda: import_session(request.user, form.cleaned_data["file"].read()),
    )
    if session is None:
        return _render(request, form)
    messages.success(request, f"{session.name} is imported.")
    return htmx_redirect(request, f"/sessions/{session.pk}/")


@require_GET
def session_export(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    """A download, as ?format= says: Markdown or JSON."""
    session = find_session(request, session_id)
    check_is_no_sub_agent(session)
    wanted = request.GET.get("format", "markdown")
    if wanted not in _FORMATS:
        raise Http404
    export, content_type, ending = _FORMATS[wanted]
    response = HttpResponse(export(session), content_type=content_type)
    name = f"{slugify(session.name)[:60] or 'session'}.{ending}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _render(request: HtmxRequest, import_form: ImportForm) -> HttpResponse:
    form = HistoryForm(request.GET, user=request.user)
    found, page_obj = None, None
    if form.is_valid():
        found, page_obj = _search(request, form)
    context = {
        "form": form,
        "import_form": import_form,
        "found": found,
        "page_obj": page_obj,
        "has_any": AgentSession.objects.visible_to(request.user).exists(),
    }
    return respond(
        request,
        "agents/history/history.html",
        "agents/history/_results.html",
        context,
        status=422 if form.errors or import_form.errors else 200,
    )


def _search(request: HtmxRequest, form: HistoryForm) -> tuple[HistoryPage, Page[int]]:
    """The page that was asked for, or the last one when there are fewer."""
    number = _page_number(request)
    user, query, filters = request.user, form.query, form.to_filters()
    found = get_history(user, query, filters, offset=(number - 1) * PAGE_SIZE)
    pages = Paginator(range(found.total), PAGE_SIZE)
    if number > pages.num_pages:
        number = pages.num_pages
        found = get_history(user, query, filters, offset=(number - 1) * PAGE_SIZE)
    return found, pages.get_page(number)


def _page_number(request: HtmxRequest) -> int:
    asked = request.GET.get("page", "")
    if not (asked.isascii() and asked.isdecimal()):
        return 1
    return min(max(int(asked[:9]), 1), _LAST_PAGE)
