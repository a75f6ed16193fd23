"""Every refusal in one shape: its kind, one sentence, and the fields at fault."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI, Schema
from ninja.errors import HttpError, ValidationError

from agents.conf import conf
from agents.errors import AgentsError, InvalidInputError

logger = logging.getLogger(__name__)

NOT_FOUND = "There is nothing at this address that you may see."


class FieldError(Schema):
    field: str
    message: str


class ErrorBody(Schema):
    code: str
    message: str
    fields: list[FieldError] = []


class ErrorOut(Schema):
    """Every answer with a status of 400 and above."""

    error: ErrorBody


# What an operation may answer besides what it is for.
REFUSALS: dict[int, type[ErrorOut]] = dict.fromkeys(
    (400, 401, 403, 404, 405, 409, 422, 429), ErrorOut
)


def error_response(
    status: int, code: str, message: str, fields: list[dict[str, str]] | None = None
) -> JsonResponse:
    body = {"code": code, "message": message, "fields": fields or []}
    response = JsonResponse({"error": body}, status=status)
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="OpenSwarm"'
    if status == 429:
        response["Retry-After"] = str(conf().login_window_seconds)
    return response


def add_handlers(api: NinjaAPI) -> None:
    handlers: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
        AgentsError: _on_agents_error,
        Http404: _on_missing,
        HttpError: _on_http_error,
        ValidationError: _on_invalid,
        Exception: _on_failure,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def _on_agents_error(request: HttpRequest, error: AgentsError) -> HttpResponse:
    fields = []
    if isinstance(error, InvalidInputError) and error.field:
        fields = [{"field": error.field, "message": error.user_message}]
    return error_response(
        error.status_code, _code_of(error), error.user_message, fields
    )


def _code_of(error: AgentsError) -> str:
    """`AlreadyDecidedError` is `already_decided`."""
    name = type(error).__name__.removesuffix("Error")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _on_missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return error_response(404, "not_found", NOT_FOUND)


_CODES = {400: "bad_request", 401: "unauthorized", 403: "forbidden", 429: "slow_down"}
_UNAUTHORIZED = "Send a token that works: Authorization: Bearer …"


def _on_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    message = _UNAUTHORIZED if error.status_code == 401 else error.message
    code = _CODES.get(error.status_code, "error")
    return error_response(error.status_code, code, message)


def _on_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    fields = [
        {"field": _field_of(each["loc"]), "message": str(each["msg"])}
        for each in error.errors
    ]
    first = fields[0]
    message = f"{first['field']}: {first['message']}"
    return error_response(422, "invalid_input", message, fields)


def _field_of(place: tuple[str | int, ...]) -> str:
    """The path within the body, or the parameter; the body's own name says nothing."""
    names = place[2:] if place[0] == "body" else place[1:]
    return ".".join(str(name) for name in names) or str(place[0])


def _on_failure(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("%s %s failed", request.method, request.path, exc_info=error)
    return error_response(500, "failed", "The server failed. Its log says why.")
