"""The site's URLs: Django's admin, the API, and the pages of `agents.web`."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("agents.api.urls")),
    path("", include("agents.web.urls")),
]
