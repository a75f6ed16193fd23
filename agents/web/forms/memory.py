"""A fact to remember, and words to find one by."""

from __future__ import annotations

from django import forms

from agents.models.memory import MEMORY_CHARACTERS

from .fields import CleanTextField


class MemoryForm(forms.Form):
    text = CleanTextField(
        label="Fact",
        max_length=MEMORY_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="One short sentence. A fact, such as “Works in Vienna time”: agents"
        " take nothing of it for an instruction.",
        error_messages={"required": "Say what to remember."},
    )


class MemorySearchForm(forms.Form):
    q = CleanTextField(label="Search", required=False, max_length=200)
