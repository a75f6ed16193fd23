"""Choosing a model: a name with suggestions, or one of a list for one message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms

from agents.domain.queries.models import ModelGroup

from .fields import CleanTextField

Choices = list[tuple[str, Any]]


class ModelInput(forms.TextInput):
    """Any name may be typed; the browser suggests those that are known.

    `_field.html` puts the list of `groups` beside it.
    """

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        plain = {"autocomplete": "off", "spellcheck": "false"}
        super().__init__({**plain, **(attrs or {})})
        self.groups: Iterable[ModelGroup] = ()

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        attributes = context["widget"]["attrs"]
        attributes["list"] = f"{attributes.get('id', name)}-models"
        return context


class ModelField(CleanTextField):
    """A model's name; `suggest` says which are known."""

    widget = ModelInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"required": False, "max_length": 200, **kwargs})


def suggest_models(form: forms.BaseForm, name: str, groups: list[ModelGroup]) -> None:
    widget = form.fields[name].widget
    assert isinstance(widget, ModelInput)
    widget.groups = groups


def model_choices(groups: list[ModelGroup], *, empty: str) -> Choices:
    """For a select: the session's own first, then the models by provider."""
    grouped = [
        (group.title, [(option.name, option.label) for option in group.options])
        for group in groups
    ]
    return [("", empty), *grouped]
