"""What a new API token is called, may do, and how long it works."""

from __future__ import annotations

from django import forms

from agents.models.tokens import TokenScope

from .fields import CleanTextField

UNTIL_REVOKED = "always"
DAYS = [
    ("7", "7 days"),
    ("30", "30 days"),
    ("90", "90 days"),
    ("365", "a year"),
    (UNTIL_REVOKED, "until it is revoked"),
]


class TokenForm(forms.Form):
    name = CleanTextField(max_length=100, help_text="Which program will use it.")
    scopes = forms.MultipleChoiceField(
        label="What it may do",
        choices=TokenScope.choices,
        initial=[TokenScope.READ],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose what the token may do."},
    )
    days = forms.TypedChoiceField(
        label="Works for",
        choices=DAYS,
        initial="90",
        coerce=lambda chosen: None if chosen == UNTIL_REVOKED else int(chosen),
    )
