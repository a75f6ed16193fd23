"""What a person prefers; the defaults of "New agent"."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.core.exceptions import ValidationError

from agents.domain.modes import mode_choices
from agents.domain.queries.models import load_models
from agents.models import Preferences
from agents.models.users import OnTimeout, Theme
from agents.policy.modes import SecurityMode

from .fields import CleanTextField, DollarsField, RowField
from .models import ModelField, suggest_models
from .people import security_mode_choices


class ThemeForm(forms.Form):
    theme = forms.ChoiceField(choices=Theme.choices)


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    run_budget_usd_micros = DollarsField(
        label="Budget of a turn",
        help_text="In US dollars. Empty: as much as it takes.",
    )

    class Meta:
        model = Preferences
        fields = [
            "theme",
            "timezone",
            "default_model",
            "default_mode",
            "default_effort",
            "run_budget_usd_micros",
            "default_security_mode",
            "default_folder",
            "system_prompt",
            "ask_for_everything",
            "on_timeout",
            "notify_on_approval",
            "notify_on_completion",
        ]
        labels = {
            "timezone": "Time zone",
            "default_model": "Model",
            "default_mode": "Mode",
            "default_effort": "Effort",
            "default_security_mode": "Security mode",
            "default_folder": "Folder",
            "ask_for_everything": "Ask for everything",
            "on_timeout": "When nobody answers in time",
            "notify_on_approval": "When an agent needs me",
            "notify_on_completion": "When an agent has finished",
        }
        help_texts = {
            "timezone": "Such as Europe/Berlin. Empty means UTC.",
            "default_model": "Empty means the site’s default.",
            "system_prompt": "Added to what every new agent of yours is told.",
            "ask_for_everything": (
                "Also ask before calls that only read in the workspace."
            ),
        }
        field_classes = {
            "timezone": CleanTextField,
            "default_model": ModelField,
            "default_folder": RowField,
            "system_prompt": CleanTextField,
        }
        widgets = {
            "timezone": forms.TextInput(
                attrs={"list": "timezones", "autocomplete": "off"}
            ),
            "system_prompt": forms.Textarea(attrs={"rows": 4}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        user = self.instance.user
        suggest_models(self, "default_model", load_models(user))
        self._choose("theme", Theme.choices)
        self._choose("on_timeout", OnTimeout.choices)
        self._choose(
            "default_security_mode", security_mode_choices(user.security_ceiling)
        )
        mode = SecurityMode(self.instance.default_security_mode)
        self.initial["default_security_mode"] = mode.capped_by(
            SecurityMode(user.security_ceiling)
        ).value
        self._choose("default_mode", mode_choices(user))
        folder = self.fields["default_folder"]
        assert isinstance(folder, forms.ModelChoiceField)
        folder.empty_label = "A fresh workspace"

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        self.fields[name] = forms.ChoiceField(
            choices=choices, label=field.label, help_text=field.help_text
        )

    @property
    def timezones(self) -> list[str]:
        return sorted(zone for zone in available_timezones() if "/" in zone)

    def clean_timezone(self) -> str:
        name: str = self.cleaned_data["timezone"].strip()
        if name and name not in available_timezones():
            raise ValidationError("There is no time zone of this name.")
        return name
