"""Form fields that clean before they judge: nothing typed is refused for a NUL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.rendering.text import clean_text, is_blank

MICROS = 1_000_000


class CleanTextField(forms.CharField):
    """Text in which NUL and lone surrogates are replaced, and not an error.

    What nobody could read is nothing.
    """

    def to_python(self, value: Any) -> str | None:
        return super().to_python(clean_text(value) if isinstance(value, str) else value)

    def validate(self, value: Any) -> None:
        super().validate(value)
        if self.required and is_blank(value):
            raise ValidationError(self.error_messages["required"], code="required")


class RowField(forms.ModelChoiceField):  # type: ignore[type-arg]  # generic in the stubs only
    """A row by its id; what is no id is no row either."""

    default_error_messages = {"invalid_choice": "Choose one of the list."}

    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value)
        except ValidationError:
            raise ValidationError(
                self.error_messages["invalid_choice"], code="invalid_choice"
            ) from None


class DollarsField(forms.DecimalField):
    """US dollars for a person, integer micro-dollars for the rest; empty is None."""

    def __init__(self, **kwargs: Any) -> None:
        limits: dict[str, Any] = {
            "min_value": Decimal("0.01"),
            "max_value": Decimal(100_000),
            "decimal_places": 2,
            "required": False,
        }
        super().__init__(**{**limits, **kwargs})

    def clean(self, value: Any) -> int | None:
        dollars = super().clean(value)
        return None if dollars is None else int(dollars * MICROS)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, int):
            return f"{Decimal(value) / MICROS:.2f}"
        return value
