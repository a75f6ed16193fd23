"""What models can do; what a person sets here stands before what machines find."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from agents.domain.capability import EFFORTS, FEATURES, capability_of, save_edited
from agents.models import ModelCapability

from .base import ModelAdmin, staff

NO_LEVELS = "none"


class CapabilityForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    effort_levels = forms.CharField(
        required=False,
        help_text=(
            f"Of {', '.join(EFFORTS)}, with commas; “{NO_LEVELS}” for a model that"
            " takes none. Empty: what machines find counts."
        ),
    )

    class Meta:
        model = ModelCapability
        fields = ["name", *FEATURES]
        help_texts = {
            "name": "Without a gateway’s prefix.",
            "native_tools": "A model without is sent no tools.",
            "context_window": "In tokens. Empty: what machines find counts.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        levels = self.instance.effort_levels
        shown = "" if levels is None else ", ".join(levels) or NO_LEVELS
        self.initial["effort_levels"] = shown

    def clean_effort_levels(self) -> list[str] | None:
        text: str = self.cleaned_data["effort_levels"].strip().lower()
        if not text:
            return None
        typed = [] if text == NO_LEVELS else [each.strip() for each in text.split(",")]
        unknown = [each for each in typed if each not in EFFORTS]
        if unknown:
            raise ValidationError(f"There is no level “{unknown[0]}”.")
        return [level for level in EFFORTS if level in typed]


@admin.register(ModelCapability)
class CapabilityAdmin(ModelAdmin):
    form = CapabilityForm
    list_display = ["name", *FEATURES, "updated_at"]
    search_fields = ["name"]
    fields = ["name", *FEATURES, "in_force"]
    readonly_fields = ["in_force"]

    @admin.display(description="in force")
    def in_force(self, row: ModelCapability) -> str:
        """Each feature with who says so, where the row itself says nothing, too."""
        known = capability_of(row.name)
        return "; ".join(
            f"{feature}: {_shown(getattr(known, feature))} ({source.label})"
            for feature, source in known.sources.items()
        )

    def save_model(
        self, request: HttpRequest, obj: ModelCapability, form: Any, change: bool
    ) -> None:
        save_edited(obj, form.changed_data, staff(request))


def _shown(value: Any) -> str:
    return ", ".join(value) or NO_LEVELS if isinstance(value, tuple) else str(value)
