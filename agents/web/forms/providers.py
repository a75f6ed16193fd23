"""Providers: the key goes in here and never comes out again."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.domain.urls import check_base_url
from agents.errors import InvalidInputError
from agents.models import Provider, User
from agents.models.providers import ProviderKind

from .fields import CleanTextField

# What may stand in an HTTP header; anything else was pasted along by mistake.
_KEY = re.compile(r"[\x21-\x7e]+")
API_KEY = "sk-ant-api"  # how keys of the API begin
NAME_CHARACTERS = 200


class ProviderForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    # No URLField: it refuses names without a dot, such as a container's.
    base_url = forms.CharField(
        label="Base URL",
        required=False,
        max_length=500,
        help_text=(
            "Needed for a gateway: 9Router, LiteLLM, Ollama, vLLM and others that "
            "speak Anthropic’s Messages API. Without /v1/messages."
        ),
        widget=forms.TextInput(attrs={"inputmode": "url", "spellcheck": "false"}),
    )
    api_key = forms.CharField(
        label="Key",
        required=False,
        max_length=4000,
        widget=forms.PasswordInput(
            attrs={"autocomplete": "new-password", "spellcheck": "false"}
        ),
    )
    models_typed = CleanTextField(
        label="Model names",
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="One a line, for a provider that does not list them all.",
    )
    remove_key = forms.BooleanField(label="Remove key", required=False)
    is_shared = forms.BooleanField(
        label="For everybody",
        required=False,
        help_text="Everybody’s agents may use it. Only owners can change it.",
    )

    class Meta:
        model = Provider
        fields = ["name", "kind", "model_prefix", "bare", "is_enabled"]
        labels = {
            "bare": "Send only what any gateway understands",
            "is_enabled": "Enabled",
        }
        help_texts = {
            "model_prefix": "Put before each model name, such as cc/.",
            "bare": "Leaves out Anthropic’s beta headers.",
            "is_enabled": "The newest enabled provider is used by default.",
        }

    field_order = ["name", "kind", "base_url", "api_key", "remove_key"]

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.is_new = self.instance._state.adding
        kind = self.fields["kind"]
        assert isinstance(kind, forms.ChoiceField)
        kind.choices = [
            choice for choice in ProviderKind.choices if choice[0] != ProviderKind.DEMO
        ]
        self.initial["base_url"] = self.instance.base_url
        self.initial["models_typed"] = "\n".join(self.instance.models_typed)
        self._describe_key()
        self.initial["is_shared"] = not self.is_new and self.instance.owner is None
        if not user.is_owner:
            del self.fields["is_shared"]

    def _describe_key(self) -> None:
        if self.instance.has_key:
            self.fields["api_key"].help_text = "A key is stored. Empty keeps it."
        else:
            del self.fields["remove_key"]
            self.fields["api_key"].help_text = (
                "Stored encrypted and never shown again. For a subscription the token"
                " that “claude setup-token” prints."
            )

    def clean_api_key(self) -> str:
        key: str = self.cleaned_data["api_key"].strip()
        if key and not _KEY.fullmatch(key):
            raise ValidationError(
                "A key has no spaces, line breaks or special letters. Copy it again."
            )
        return key

    def clean_base_url(self) -> str:
        url: str = self.cleaned_data["base_url"].strip()
        if url:
            try:
                check_base_url(url, allow_private=self.user.is_owner)
            except InvalidInputError as error:
                raise ValidationError(error.user_message) from error
        return url

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if found.get("kind") == ProviderKind.GATEWAY and found.get("base_url") == "":
            self.add_error("base_url", "A gateway needs its address.")
        if found.get("api_key") and found.get("remove_key"):
            self.add_error("remove_key", "Either enter a new key or remove the old.")
        self._check_token(found)
        return found

    def _check_token(self, found: dict[str, Any]) -> None:
        """Of a subscription there is a token, of the API there are keys."""
        if found.get("kind") != ProviderKind.SUBSCRIPTION:
            return
        key = found.get("api_key")
        if key and key.startswith(API_KEY):
            self.add_error(
                "api_key", "This is a key of the API. Choose the kind “Anthropic API”."
            )
        if "api_key" in found and not key and not self.instance.has_key:
            self.add_error("api_key", "A subscription needs its token.")

    def clean_models_typed(self) -> list[str]:
        lines = self.cleaned_data["models_typed"].splitlines()
        names = dict.fromkeys(line.strip() for line in lines if line.strip())
        if any(len(name) > NAME_CHARACTERS for name in names):
            raise ValidationError(f"A name has up to {NAME_CHARACTERS} characters.")
        return list(names)

    def provider(self) -> Provider:
        """The provider as the valid form describes it, not stored yet."""
        provider: Provider = self.instance
        provider.base_url = self.cleaned_data["base_url"]
        provider.models_typed = self.cleaned_data["models_typed"]
        if self.cleaned_data.get("remove_key"):
            provider.api_key = ""
        elif self.cleaned_data["api_key"]:
            provider.api_key = self.cleaned_data["api_key"]
        if self.is_new or "is_shared" in self.fields:
            shared = self.cleaned_data.get("is_shared", False)
            provider.owner = None if shared else self.user
        return provider
