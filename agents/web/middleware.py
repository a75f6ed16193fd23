"""What happens around every view: expired logins, errors of ours, the time zone.

All three come after Django's `LoginRequiredMiddleware` and django-htmx.
"""

from __future__ import annotations

from typing import cast
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin
from django_htmx.http import HttpResponseClientRedirect

from agents.domain.accounts import preferences_of
from agents.errors import AgentsError
from agents.models import Preferences, User

from .http import PublicRequest, came_from, toast_response


class LoginRedirectMiddleware(MiddlewareMixin):
    """After signing in again, people come back to the page they were looking at.

    Django sends them to the address of the request, which for a form is no page.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if not _asks_to_sign_in(response):
            return response
        htmx = cast("PublicRequest", request).htmx
        if htmx:
            back = htmx.current_url_abs_path or "/"
            return HttpResponseClientRedirect(redirect_to_login(back).url)
        if request.method != "GET":
            return redirect_to_login(came_from(request, "/"))
        return response


def _asks_to_sign_in(response: HttpResponseBase) -> bool:
    target = urlsplit(getattr(response, "url", ""))
    return (
        response.status_code == 302
        and target.path == resolve_url(settings.LOGIN_URL)
        and REDIRECT_FIELD_NAME in parse_qs(target.query)
    )


class ErrorMiddleware(MiddlewareMixin):
    """An error of ours becomes its status code and its sentence."""

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        if not isinstance(exception, AgentsError):
            return None
        status = exception.status_code
        if cast("PublicRequest", request).htmx:
            return toast_response(exception.user_message, level="error", status=status)
        context = {"sentence": exception.user_message, "back": came_from(request, "/")}
        return render(request, "agents/accounts/refused.html", context, status=status)


class TimezoneMiddleware(MiddlewareMixin):
    """Times are shown in the zone that the person prefers."""

    def process_request(self, request: HttpRequest) -> None:
        user = request.user
        name = _preferences(user).timezone if user.is_authenticated else ""
        try:
            timezone.activate(ZoneInfo(name)) if name else timezone.deactivate()
        except (ZoneInfoNotFoundError, ValueError):
            timezone.deactivate()


def _preferences(user: User) -> Preferences:
    """The person's row; the relation keeps it, so that the page asks only once."""
    try:
        return user.preferences
    except Preferences.DoesNotExist:
        return preferences_of(user)
