"""What an owner decides about other people."""

from __future__ import annotations

from typing import Any

from django import forms

from agents.domain.people import NO_OWNER_LEFT, would_leave_no_owner
from agents.models import User
from agents.models.users import Role
from agents.policy.modes import SecurityMode

from .fields import CleanTextField

ROLE_HELP = (
    "Owners manage the site and see the admin. Members run agents. Viewers start "
    "none; they will see what is shared with them, once sessions can be shared."
)
SECURITY_MODE_LABELS = {
    SecurityMode.DENY: "Deny: no tool runs",
    SecurityMode.SANDBOX: "Sandbox: reading only",
    SecurityMode.ALLOWLIST: "Allowlist: only what a rule names",
    SecurityMode.ASK: "Ask: a person decides",
    SecurityMode.FULL: "Full: nothing is asked",
}


def security_mode_choices(up_to: str) -> list[tuple[str, str]]:
    """The modes, from tightest to loosest, that a ceiling leaves."""
    ceiling = SecurityMode(up_to)
    return [
        (mode.value, label)
        for mode, label in SECURITY_MODE_LABELS.items()
        if mode.rank <= ceiling.rank
    ]


class InviteForm(forms.Form):
    role = forms.ChoiceField(
        choices=Role.choices, initial=Role.MEMBER, help_text=ROLE_HELP
    )


class PersonForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    class Meta:
        model = User
        fields = ["role", "security_ceiling", "allowed_models", "is_active"]
        labels = {
            "security_ceiling": "Widest security mode",
            "allowed_models": "Models",
            "is_active": "May sign in",
        }
        help_texts = {
            "role": ROLE_HELP,
            "security_ceiling": "None of this person’s agents may do more than that.",
            "allowed_models": (
                "One name or pattern a line, such as claude-haiku-*. Empty: every "
                "model that a provider has."
            ),
            "is_active": (
                "Switching this off signs the person out everywhere and stops their "
                "agents. Nothing of theirs is deleted."
            ),
        }
        field_classes = {"allowed_models": CleanTextField}
        widgets = {"allowed_models": forms.Textarea(attrs={"rows": 3})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        ceiling = forms.ChoiceField(
            choices=security_mode_choices(SecurityMode.FULL),
            label=self.fields["security_ceiling"].label,
            help_text=self.fields["security_ceiling"].help_text,
        )
        self.fields["security_ceiling"] = ceiling

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # a hook the stubs leave out
        if not self.errors and would_leave_no_owner(self.instance):
            self.add_error(None, NO_OWNER_LEFT)
