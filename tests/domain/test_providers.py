from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from agents.domain import providers
from agents.models import AgentSession, AuditEntry, Provider, User
from agents.models.providers import ProviderKind
from tests import factories
from tests.disk import files_holding
from tests.threads import at_once

KEY = "sk-ant-canary-0123456789"


def make(owner: User | None = None, **fields: Any) -> Provider:
    defaults = {"name": "Mine", "kind": ProviderKind.ANTHROPIC, "api_key": KEY}
    return Provider.objects.create(owner=owner, **{**defaults, **fields})


# Which one is used


def test_without_any_provider_the_demo_answers(session: AgentSession) -> None:
    demo = providers.provider_for(session)

    assert (demo.kind, demo.owner, demo.name) == ("demo", None, "Demo model")
    assert providers.provider_for(session) == demo
    assert providers.is_scripted(session)


def test_the_order_is_session_own_newest_site_demo(
    session: AgentSession, alice: User, bob: User
) -> None:
    make(bob)
    providers.demo_provider()
    assert providers.provider_for(session).kind == "demo"

    site = make(None, name="Site")
    assert providers.provider_for(session) == site
    make(alice, name="Older")
    newer = make(alice, name="Newer")
    assert providers.provider_for(session) == newer
    chosen = make(alice, name="Chosen", is_enabled=False)
    session.provider = chosen
    assert providers.provider_for(session) == newer
    chosen.is_enabled = True
    assert providers.provider_for(session) == chosen
    assert not providers.is_scripted(session)


def test_disabled_providers_are_passed_over(session: AgentSession, alice: User) -> None:
    make(alice, is_enabled=False)
    make(None, is_enabled=False)

    assert providers.provider_for(session).kind == "demo"


def test_a_session_never_uses_somebody_elses_key(
    session: AgentSession, bob: User
) -> None:
    session.provider = make(bob)

    assert providers.provider_for(session).kind == "demo"


@pytest.mark.django_db(transaction=True)
def test_the_demo_is_made_once() -> None:
    results = at_once(*[providers.demo_provider] * 4)

    assert set(results) == {Provider.objects.get()}


def test_the_database_itself_allows_one_site_demo(db: None) -> None:
    providers.demo_provider()

    with pytest.raises(IntegrityError), transaction.atomic():
        make(None, kind=ProviderKind.DEMO)


@pytest.mark.parametrize(
    ("kind", "base_url", "url"),
    [
        ("anthropic", "", "https://api.anthropic.com"),
        ("anthropic", "https://proxy.example", "https://proxy.example"),
        ("subscription", "", "https://api.anthropic.com"),
        ("gateway", "https://router.example", "https://router.example"),
        ("demo", "", ""),
    ],
)
def test_each_kind_has_its_address(kind: str, base_url: str, url: str) -> None:
    assert providers.upstream_url(Provider(kind=kind, base_url=base_url)) == url


# Keys at rest


def stored_key(provider: Provider) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT api_key FROM agents_provider WHERE id = %s", [provider.pk.hex]
        )
        return str(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
@pytest.mark.database("sqlite")
def test_no_file_of_the_database_holds_the_key() -> None:
    provider = make(factories.make_user("alice"), name="canary-name-in-clear")

    database = Path(connection.settings_dict["NAME"])
    files = list(database.parent.glob(f"{database.name}*"))

    assert files_holding("canary-name-in-clear", *files), "the control: rows are there"
    assert files_holding(KEY, *files) == []
    assert Provider.objects.get(pk=provider.pk).api_key == KEY


def test_a_new_first_key_encrypts_and_old_ones_still_decrypt(
    alice: User, settings: Any
) -> None:
    settings.ENCRYPTION_KEYS = ["old"]
    provider = make(alice)
    under_old = stored_key(provider)

    settings.ENCRYPTION_KEYS = ["new", "old"]
    provider.refresh_from_db()
    assert provider.api_key == KEY
    provider.save()
    assert stored_key(provider) != under_old

    settings.ENCRYPTION_KEYS = ["new"]
    provider.refresh_from_db()
    assert provider.api_key == KEY


def test_a_lost_key_reads_as_empty(alice: User, settings: Any) -> None:
    provider = make(alice)

    settings.ENCRYPTION_KEYS = ["another"]

    provider = Provider.objects.get(pk=provider.pk)
    assert provider.api_key == ""
    assert not provider.has_key


def test_an_empty_key_stays_empty(alice: User) -> None:
    provider = make(alice, api_key="")

    assert stored_key(provider) == ""
    assert Provider.objects.get(pk=provider.pk).api_key == ""


# Changing them


def test_changes_are_audited_without_the_key(alice: User) -> None:
    provider = Provider(owner=alice, name="Mine", kind="anthropic", api_key=KEY)
    providers.save_provider(provider, alice)
    provider.name = "Renamed"
    providers.save_provider(provider, alice)
    providers.delete_provider(provider, alice)

    entries = AuditEntry.objects.order_by("pk")
    assert [entry.action for entry in entries] == [
        "provider.created",
        "provider.changed",
        "provider.deleted",
    ]
    assert KEY not in str(list(entries.values()))
    assert not Provider.objects.exists()


def test_a_test_result_is_cleaned_and_keeps_the_key(alice: User) -> None:
    provider = make(alice)

    providers.record_test(provider, error="No\x00", models=["m\ud800"])
    providers.record_test(provider, error="", models=[])

    provider.refresh_from_db()
    assert (provider.test_error, provider.models_found) == ("", ["m\ufffd"])
    assert provider.api_key == KEY
    assert provider.tested_at is not None
