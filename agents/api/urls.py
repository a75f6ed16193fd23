"""The API's URLs: its operations, the document, the page about it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, re_path

from .app import api
from .docs import api_docs, api_document, api_nowhere
from .errors import error_response

View = Callable[..., HttpResponseBase]


def _for_programs(view: View) -> View:
    """Tokens instead of logins, and the usual shape also for a wrong method."""

    @wraps(view)
    def wrapper(request: HttpRequest, /, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        if response.status_code != 405:
            return response
        allowed = response.headers["Allow"]
        message = f"This address knows only {allowed}."
        refused = error_response(405, "method_not_allowed", message)
        refused["Allow"] = allowed
        return refused

    # `wraps` brought what says that the view needs no CSRF token.
    return login_not_required(wrapper)


def _operations() -> list[URLPattern]:
    patterns, _, _ = api.urls
    for pattern in patterns:
        assert isinstance(pattern, URLPattern), "routers are flat"
        pattern.callback = _for_programs(pattern.callback)
    # The last is Ninja's own, for the address of the whole.
    return [pattern for pattern in patterns if isinstance(pattern, URLPattern)]


operations = _operations()
urlpatterns: list[Any] = [
    path("", api_docs, name="api_docs"),
    path("openapi.json", api_document, name="api_document"),
    path("", (operations, "ninja", "api")),
    re_path(r"", api_nowhere, name="api_nowhere"),
]
