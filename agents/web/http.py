"""What every view shares: request types, answers for htmx, the client's address."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.forms import BaseForm
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    QueryDict,
)
from django.http.response import HttpResponseRedirectBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from agents.domain import addresses
from agents.errors import InvalidInputError
from agents.models import User

P = ParamSpec("P")
T = TypeVar("T")


class PublicRequest(HttpRequest):
    """A request of anybody; `user` may be anonymous."""

    htmx: HtmxDetails


class HtmxRequest(PublicRequest):
    """A request of somebody signed in, which `LoginRequiredMiddleware` ensures."""

    user: User


View = Callable[Concatenate[HtmxRequest, P], HttpResponse]


def wants_fragment(request: PublicRequest) -> bool:
    """Whether htmx asked for a part of the page; a boosted link wants all of it."""
    return bool(request.htmx) and not request.htmx.boosted


def respond(
    request: PublicRequest,
    page: str,
    partial: str,
    context: Mapping[str, Any],
    *,
    status: int = 200,
) -> HttpResponse:
    """Render `partial` for htmx, else the whole `page`, from one context."""
    template = partial if wants_fragment(request) else page
    response = render(request, template, dict(context), status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def submitted(request: HttpRequest) -> QueryDict | None:
    """The data of a form that was sent, however empty; None when it is only shown."""
    return request.POST if request.method == "POST" else None


def htmx_redirect(request: PublicRequest, url: str) -> HttpResponseRedirectBase:
    """Send the browser to `url`, also when htmx would swap the target's page in."""
    if request.htmx:
        return HttpResponseClientRedirect(url)
    return HttpResponseRedirect(url)


def toast_response(
    text: str, *, level: str = "success", status: int = 200
) -> HttpResponse:
    """For htmx: leave the page as it is and show one sentence.

    The text is the body too: toasts.js shows a plain text that comes with an error.
    """
    response = HttpResponse(text, status=status, content_type="text/plain")
    response["HX-Reswap"] = "none"
    response["HX-Trigger"] = json.dumps({"toast": {"level": level, "text": text}})
    return response


def client_address(request: HttpRequest) -> str:
    return addresses.client_address(request.META)


def safe_next(request: HttpRequest, default: str) -> str:
    """Where to go after signing in: `next` while it stays on this site."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    return wanted if _is_ours(request, wanted) else default


def came_from(request: HttpRequest, default: str) -> str:
    """The path of the page that sent this request, or `default` for a foreign one."""
    referer = request.headers.get("Referer", "")
    if not _is_ours(request, referer):
        return default
    parts = urlsplit(referer)
    back = f"{parts.path}?{parts.query}" if parts.query else parts.path
    # A path with two slashes in front would name another site.
    return back if _is_ours(request, back) else default


def _is_ours(request: HttpRequest, url: str) -> bool:
    return url_has_allowed_host_and_scheme(
        url, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )


def absolute_url(request: HttpRequest, path: str) -> str:
    """The address under which other people reach `path`."""
    public: str = settings.PUBLIC_URL
    return f"{public}{path}" if public else request.build_absolute_uri(path)


def owner_required(view: View[P]) -> View[P]:
    """To anyone but owners the page doesn't exist."""

    @wraps(view)
    def wrapper(
        request: HtmxRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        if not request.user.is_owner:
            raise Http404
        return view(request, *args, **kwargs)

    return wrapper


def apply_form(form: BaseForm, action: Callable[[], T]) -> T | None:
    """Do `action` if the form is valid; input that it refuses becomes a form error.

    Returns: what `action` returned, or None when the form has errors now.
    """
    if not form.is_valid():
        return None
    try:
        return action()
    except InvalidInputError as error:
        form.add_error(
            error.field if error.field in form.fields else None, error.user_message
        )
        return None
