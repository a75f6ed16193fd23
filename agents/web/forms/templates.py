"""Prompt templates: making one with its fields, and filling one in."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.domain.prompt_templates import FIELD_NAME, MAX_FIELDS
from agents.models import PromptTemplate
from agents.models.templates import FieldType

from .fields import CleanTextField

EMPTY_ROWS = 3
MAX_OPTIONS = 50


class TemplateEditForm(forms.Form):
    name = CleanTextField(max_length=100)
    description = CleanTextField(max_length=300, required=False)
    text = CleanTextField(
        max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 10}),
        help_text="Write {{field}} where a value goes.",
    )

    def __init__(self, *args: Any, template: PromptTemplate, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = ("name", "description", "text")
        self.initial = {name: getattr(template, name) for name in names}


class FieldForm(forms.Form):
    """One field of a template; a row without a name is none."""

    name = CleanTextField(max_length=40, required=False)
    label = CleanTextField(max_length=100, required=False)
    type = forms.ChoiceField(choices=FieldType.choices, required=False)
    required = forms.BooleanField(required=False, initial=True)
    options = CleanTextField(
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Of a choice: one a line.",
    )
    default = CleanTextField(max_length=1000, required=False)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name and not FIELD_NAME.fullmatch(name):
            raise ValidationError(
                "A field’s name has letters, digits and underscores only."
            )
        return name

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        is_choice = data.get("type") == FieldType.CHOICE
        options = [line.strip() for line in (data.get("options") or "").splitlines()]
        data["options"] = given = list(dict.fromkeys(filter(None, options)))
        if data.get("name") and is_choice and not given:
            self.add_error("options", "A choice needs options, one a line.")
        if len(given) > MAX_OPTIONS:
            self.add_error("options", f"At most {MAX_OPTIONS} options.")
        return data

    def to_field(self) -> dict[str, Any]:
        data = self.cleaned_data
        name = data["name"]
        return {
            "name": name,
            "label": data["label"] or name.replace("_", " ").capitalize(),
            "type": data["type"] or FieldType.TEXT.value,
            "required": data["required"],
            "options": data["options"] if data["type"] == FieldType.CHOICE else [],
            "default": data["default"],
        }


FieldFormSet = forms.formset_factory(FieldForm, extra=EMPTY_ROWS, max_num=MAX_FIELDS)


def field_rows(data: Any, template: PromptTemplate) -> Any:
    """The formset of a template's fields, with empty rows for more."""
    rows = [
        {**field, "options": "\n".join(field["options"])} for field in template.fields
    ]
    return FieldFormSet(data, initial=rows, prefix="fields")


def fields_of(rows: Any) -> list[dict[str, Any]]:
    return [form.to_field() for form in rows if form.cleaned_data.get("name")]


class TemplateUseForm(forms.Form):
    """The fields of one template, each by its type."""

    session = forms.UUIDField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, template: PromptTemplate, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._names = [str(field["name"]) for field in template.fields]
        for field in template.fields:
            self.fields[_key(field["name"])] = _field(field)

    @property
    def rows(self) -> list[forms.BoundField]:
        return [self[_key(name)] for name in self._names]

    @property
    def values(self) -> dict[str, str]:
        data = self.cleaned_data
        return {name: _text(data[_key(name)]) for name in self._names}


def _key(name: str) -> str:
    return f"field_{name}"


def _text(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return "" if value is None else str(value)


def _field(field: dict[str, Any]) -> forms.Field:
    common: dict[str, Any] = {
        "label": field["label"],
        "required": field["required"],
        "initial": field["default"] or None,
    }
    match field["type"]:
        case FieldType.LONG_TEXT:
            return CleanTextField(
                max_length=100_000, widget=forms.Textarea(attrs={"rows": 5}), **common
            )
        case FieldType.NUMBER:
            widget = forms.NumberInput(attrs={"step": "any"})
            return forms.DecimalField(max_digits=30, widget=widget, **common)
        case FieldType.DATE:
            return forms.DateField(
                widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
                **common,
            )
        case FieldType.CHOICE:
            empty = [] if field["required"] else [("", "–")]
            choices = [*empty, *((option, option) for option in field["options"])]
            return forms.ChoiceField(choices=choices, **common)
        case _:
            return CleanTextField(max_length=10_000, **common)
