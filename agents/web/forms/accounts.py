"""Signing in, making an account from a link, changing the password."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import password_validation
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from agents.conf import conf
from agents.domain.accounts import check_new_username, sign_in_is_blocked
from agents.errors import InvalidInputError
from agents.models import User


class SignInForm(AuthenticationForm):
    """Refuses before it looks at the password once there were too many failures."""

    error_messages = {
        "invalid_login": "This username and password don’t go together.",
        "inactive": "This account is switched off.",
    }

    def __init__(self, request: HttpRequest, *, address: str = "", **kwargs: Any):
        super().__init__(request, **kwargs)
        self.address = address
        self.is_blocked = False

    @property
    def tried_username(self) -> str:
        return str(self.cleaned_data.get("username") or "")

    def clean(self) -> dict[str, Any]:
        if sign_in_is_blocked(self.tried_username, self.address):
            self.is_blocked = True
            minutes = max(1, round(conf().login_window_seconds / 60))
            raise ValidationError(
                "Too many attempts to sign in failed. Wait "
                f"{minutes} minute{'s' if minutes > 1 else ''}, then try again."
            )
        return super().clean()


class AccountForm(forms.Form):
    """A new account: the first owner's, or one by invite."""

    username = forms.CharField(
        max_length=150,
        widget=forms.TextInput(
            attrs={
                "autofocus": True,
                "autocomplete": "username",
                "autocapitalize": "none",
                "spellcheck": "false",
            }
        ),
    )
    email = forms.EmailField(
        required=False, widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )
    password = forms.CharField(
        strip=False,
        help_text="At least 8 characters, and nothing too common.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    repeated = forms.CharField(
        strip=False,
        label="Repeat it",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        try:
            check_new_username(username)
        except InvalidInputError as error:
            raise ValidationError(error.user_message) from error
        return username

    def clean(self) -> dict[str, Any]:
        found = self.cleaned_data
        password = found.get("password")
        if password and found.get("repeated") and password != found["repeated"]:
            self.add_error("repeated", "This is not the same password.")
        if password:
            self._validate_password(password)
        return found

    def _validate_password(self, password: str) -> None:
        # The validators compare it with what the account says about the person.
        user = User(
            username=self.cleaned_data.get("username", ""),
            email=self.cleaned_data.get("email", ""),
        )
        try:
            password_validation.validate_password(password, user)
        except ValidationError as error:
            self.add_error("password", error)


class PasswordForm(PasswordChangeForm):
    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.fields["old_password"].label = "Current password"
        self.fields["new_password1"].label = "New password"
        self.fields[
            "new_password1"
        ].help_text = "At least 8 characters, and nothing too common."
        self.fields["new_password2"].label = "Repeat it"
        self.fields["new_password2"].help_text = ""
