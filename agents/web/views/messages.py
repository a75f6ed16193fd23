"""Messages: sending, showing in full, taking out of the queue."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse


def message_send(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def message_show(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def message_remove(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")
