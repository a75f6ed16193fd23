"""What the admin classes share: read-only, audited, JSON laid out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from agents.domain import audit
from agents.models import User
from agents.rendering.text import json_text, reveal_invisible, truncate_bytes

if TYPE_CHECKING:  # generic for the type checker only
    ModelAdmin = admin.ModelAdmin[Any]
    TabularInline = admin.TabularInline[Any, Any]
else:
    ModelAdmin = admin.ModelAdmin
    TabularInline = admin.TabularInline

MAX_SHOWN_BYTES = 256 * 1024


class ReadOnlyMixin:
    """Nobody adds, changes or deletes here; whoever is staff may look."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(ReadOnlyMixin, ModelAdmin):
    show_full_result_count = False
    list_per_page = 50
    # Whether the pages show what people and their agents said.
    is_private: ClassVar[bool] = False

    class Media:
        css = {"all": ["css/admin.css"]}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        if self.is_private:
            _record_look("admin.listed", request, list=self.opts.model_name or "")
        return super().changelist_view(request, extra_context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if self.is_private and (target := self.get_object(request, object_id)):
            _record_look("admin.viewed", request, target=target)
        return super().change_view(request, object_id, form_url, extra_context)


def _record_look(
    action: str, request: HttpRequest, *, target: Model | None = None, **data: Any
) -> None:
    if request.GET:
        data["filter"] = request.GET.urlencode()[:500]
    audit.record(action, actor=staff(request), target=target, **data)


def staff(request: HttpRequest) -> User:
    """The person at work; the admin site lets in nobody who isn't signed in."""
    assert not isinstance(request.user, AnonymousUser)
    return request.user


def pretty_json(value: Any) -> SafeString:
    return pretty_text(json_text(value))


def pretty_json_text(value: str) -> SafeString:
    """JSON that is stored as text; what isn't valid is shown as it is."""
    try:
        return pretty_json(json.loads(value))
    except ValueError:
        return pretty_text(value)


def pretty_text(value: str) -> SafeString:
    """Text as it stands, hidden characters made visible, capped."""
    text, was_cut = truncate_bytes(value, MAX_SHOWN_BYTES)
    return format_html(
        '<pre class="inspected">{}{}</pre>',
        reveal_invisible(text),
        "\n… (cut)" if was_cut else "",
    )


def list_link(model: type[Model], label: str, **filters: Any) -> SafeString:
    """A link to the list of `model`, filtered."""
    address = reverse(
        f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
    )
    return format_html('<a href="{}?{}">{}</a>', address, urlencode(filters), label)
