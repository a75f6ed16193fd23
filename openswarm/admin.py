"""The admin site: our own sign-in page (with its limits), and 404 for strangers.

It is not in `agents.admin`, because that package registers its classes with the site
while it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, cast

from django.contrib import admin
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class InspectionSite(admin.AdminSite):
    site_header = "OpenSwarm admin"
    site_title = "OpenSwarm admin"
    index_title = "Inspect"

    @method_decorator(never_cache)
    @login_not_required
    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Django's own form would let passwords be guessed without any limit."""
        wanted = request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index")
        if request.user.is_authenticated:
            return redirect("admin:index")
        return redirect_to_login(wanted)

    def password_change(  # type: ignore[override]  # the stub is narrower than Django
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return redirect("password_change")

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        checked = super().admin_view(view, cacheable)

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if request.user.is_authenticated and not self.has_permission(request):
                raise Http404
            return checked(request, *args, **kwargs)

        return cast("View", update_wrapper(guarded, view))
