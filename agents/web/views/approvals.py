"""Approvals: the inbox, decisions and answers to questions."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse


def approval_list(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def approval_decide(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")


def question_answer(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return HttpResponse("soon")
