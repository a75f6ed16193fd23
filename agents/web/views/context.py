"""What the model holds of a conversation: have it summarised, or forgotten."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_POST

from agents.domain import context
from agents.web.http import HtmxRequest

from .sessions import find_operable, respond_with_parts

PARTS = ("menu", "status", "actions", "tail", "context", "queue")


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
