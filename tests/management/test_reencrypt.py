"""Changing the encryption key without losing a stored key."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agents.models import Provider
from agents.models.providers import ProviderKind

pytestmark = pytest.mark.django_db


def make_provider(key: str) -> Provider:
    return Provider.objects.create(name="Own", kind=ProviderKind.ANTHROPIC, api_key=key)


def test_stored_secrets_move_to_the_newest_key(settings: Any, capsys: Any) -> None:
    settings.ENCRYPTION_KEYS = ["old"]
    provider, without_key = make_provider("sk-ant-secret"), make_provider("")

    settings.ENCRYPTION_KEYS = ["new", "old"]
    call_command("reencrypt")

    assert capsys.readouterr().out == (
        "1 secret(s) are encrypted with the newest key.\n"
    )
    settings.ENCRYPTION_KEYS = ["new"]
    provider.refresh_from_db()
    without_key.refresh_from_db()
    assert (provider.api_key, without_key.api_key) == ("sk-ant-secret", "")


def test_a_secret_of_a_lost_key_is_named_and_kept(settings: Any) -> None:
    settings.ENCRYPTION_KEYS = ["lost"]
    provider = make_provider("sk-ant-secret")

    settings.ENCRYPTION_KEYS = ["new"]
    with pytest.raises(CommandError, match="1 secret"):
        call_command("reencrypt")

    settings.ENCRYPTION_KEYS = ["new", "lost"]
    provider.refresh_from_db()
    assert provider.api_key == "sk-ant-secret"
