"""Sessions: the list, "New agent", and the page of one session."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse


def session_list(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def session_new(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def session_detail(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def session_older(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def session_stop(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def session_retry(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def session_continue(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def session_rename(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def session_settings(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def session_close(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")
