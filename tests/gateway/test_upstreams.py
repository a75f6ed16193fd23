from __future__ import annotations

import pytest

from agents.domain.providers import demo_provider
from agents.gateway.lines import Upstream
from agents.gateway.server import resolve_upstream
from agents.gateway.upstreams import upstream_of
from agents.models import AgentSession, Provider, User


def provider(owner: User | None, **changes: object) -> Provider:
    values = {"kind": "gateway", "name": "P", "base_url": "https://x.example"}
    return Provider.objects.create(owner=owner, **(values | changes))


def test_without_any_provider_it_is_the_demo_model(session: AgentSession) -> None:
    found = resolve_upstream(session)

    assert found == Upstream(demo_provider().pk, "demo", "", "", allow_private=True)
    assert found.is_demo


def test_it_carries_what_the_provider_says(session: AgentSession) -> None:
    own = provider(session.owner, api_key="k", model_prefix="cc/", bare=True)

    found = resolve_upstream(session)

    assert found == Upstream(own.pk, "gateway", "https://x.example", "k", "cc/", True)
    assert "'k'" not in repr(found)


def test_anthropic_has_an_address_of_its_own(session: AgentSession) -> None:
    provider(session.owner, kind="anthropic", base_url="", api_key="k")

    assert resolve_upstream(session).base_url == "https://api.anthropic.com"


@pytest.mark.parametrize(
    ("role", "allowed"), [("owner", True), ("member", False), ("viewer", False)]
)
def test_only_the_owner_vouches_for_private_addresses(
    session: AgentSession, role: str, allowed: bool
) -> None:
    person = User.objects.create_user(username="bob", role=role)

    assert upstream_of(provider(person)).allow_private is allowed
    assert upstream_of(provider(None)).allow_private is True
