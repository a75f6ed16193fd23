"""What comes with messages: the pictures they hold, and the files to choose from."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from agents.domain.queries.places import load_places
from agents.models import Message
from agents.web.http import HtmxRequest, respond

from .sessions import find_operable

_MEDIA_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp"}


@require_GET
def message_image(request: HtmxRequest, message_id: UUID) -> HttpResponse:
    """The picture `?n=` of a message; with `&small=1` its thumbnail."""
    visible = Message.objects.visible_to(request.user).filter(hidden=False)
    message = get_object_or_404(visible, pk=message_id)
    image = _image(message, request.GET.get("n", ""))
    is_small = "small" in request.GET and image.get("thumbnail")
    data, kind = (
        (image["thumbnail"], "image/jpeg")
        if is_small
        else (image.get("data"), image.get("media_type"))
    )
    try:
        content = base64.b64decode(str(data), validate=True)
    except (binascii.Error, ValueError):
        raise Http404 from None
    if kind not in _MEDIA_TYPES:
        raise Http404
    response = HttpResponse(content, content_type=kind)
    response["Cache-Control"] = "private, max-age=86400, immutable"
    return response


def _image(message: Message, number: str) -> dict[str, Any]:
    images = message.attachments.get("images")
    if not isinstance(images, list) or not number.isdecimal() or len(number) > 3:
        raise Http404
    if int(number) >= len(images) or not isinstance(images[int(number)], dict):
        raise Http404
    image: dict[str, Any] = images[int(number)]
    return image


@require_GET
def session_paths(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    """The files of the session's folder, to tick those that a message is about."""
    session = find_operable(request, session_id)
    return respond(
        request,
        "agents/attachments/paths.html",
        "agents/attachments/_paths.html",
        {"session": session, "places": load_places(session)},
    )
