"""Form fields that clean before they judge: nothing typed is refused for a NUL."""

from __future__ import annotations

from typing import Any

from django import forms

from agents.rendering.text import clean_text


class CleanTextField(forms.CharField):
    """Text in which NUL and lone surrogates are replaced, and not an error."""

    def to_python(self, value: Any) -> str | None:
        return super().to_python(clean_text(value) if isinstance(value, str) else value)
