"""Accounts; what changes here goes through the same domain functions as the pages."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.http import HttpRequest, HttpResponse

from agents.domain import audit
from agents.domain.people import NO_OWNER_LEFT, save_person, would_leave_no_owner
from agents.models import User

from .base import staff


class AccountForm(UserChangeForm):  # type: ignore[type-arg]  # generic in the stubs only
    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # a hook the stubs leave out
        if not self.errors and would_leave_no_owner(self.instance):
            self.add_error("role", NO_OWNER_LEFT)


@admin.register(User)
class UserAdmin(DjangoUserAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    form = AccountForm
    list_display = [
        "username",
        "email",
        "role",
        "security_ceiling",
        "is_active",
        "last_login",
    ]
    list_filter = ["role", "security_ceiling", "is_active"]
    search_fields = ["username", "email"]
    # Staff and superuser follow from the role; groups and permissions aren't used.
    fieldsets = [
        (None, {"fields": ["username", "password", "email"]}),
        ("What they may do", {"fields": ["role", "security_ceiling", "is_active"]}),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    ]
    add_fieldsets = [
        (
            None,
            {
                "classes": ["wide"],
                "fields": [
                    "username",
                    "password1",
                    "password2",
                    "role",
                    "security_ceiling",
                ],
            },
        ),
    ]
    readonly_fields = ["last_login", "date_joined"]
    filter_horizontal = []

    def has_delete_permission(
        self, request: HttpRequest, obj: User | None = None
    ) -> bool:
        """Deleting would take the history along; switching off does what's wanted."""
        return False

    def save_model(
        self, request: HttpRequest, obj: User, form: Any, change: bool
    ) -> None:
        save_person(obj, staff(request))

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        response = super().user_change_password(request, id, form_url)
        if request.method == "POST" and response.status_code == 302:
            person = self.get_object(request, id)
            audit.record("password.changed", actor=staff(request), target=person)
        return response
