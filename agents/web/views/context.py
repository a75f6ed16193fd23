"""What the model holds of a conversation: have it summarised, or forgotten."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from agents.domain import context
from agents.domain.queries.model_context import get_context
from agents.domain.requests import last_request
from agents.web.http import HtmxRequest

from .sessions import find_operable, respond_with_parts

PARTS = ("menu", "status", "actions", "tail", "context", "queue")


@require_GET
def session_context(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    """What the model saw last; `?format=json` is the whole request as a file.

    For those who may operate the session: it holds what its owner tells the agent.
    """
    session = find_operable(request, session_id)
    seen = get_context(session)
    if request.GET.get("format") == "json" and seen and not seen.is_truncated:
        response = JsonResponse(
            last_request(session.pk), json_dumps_params={"ensure_ascii": False}
        )
        name = f"request-{session.pk}.json"
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        return response
    return render(
        request, "agents/context/show.html", {"session": session, "seen": seen}
    )


@require_POST
def session_compact(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    context.compact(session)
    return respond_with_parts(request, session, *PARTS)


@require_POST
def session_clear(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    session = find_operable(request, session_id)
    context.clear(session, request.user)
    return respond_with_parts(request, session, *PARTS)
