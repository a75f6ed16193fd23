"""Providers: which upstream a session's model calls go to."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from agents.models import AgentSession, Provider, User
from agents.models.providers import ProviderKind
from agents.rendering.text import clean_json, clean_text

from . import audit, tracking

ANTHROPIC_URL = "https://api.anthropic.com"
DEMO_NAME = "Demo model"


def provider_for(session: AgentSession) -> Provider:
    """The session's own provider, else the owner's, else the site's, else the demo."""
    chosen = session.provider
    if chosen is None or not chosen.is_enabled:
        return default_provider(session.owner)
    # An account's key serves that account's sessions only.
    is_theirs = chosen.owner_id in (None, session.owner_id)
    return chosen if is_theirs else default_provider(session.owner)


def default_provider(user: User) -> Provider:
    """The newest enabled one of the person, then of the site; the demo without any."""
    usable = (
        Provider.objects.visible_to(user)
        .filter(is_enabled=True)
        .exclude(kind=ProviderKind.DEMO)
    )
    own = usable.filter(owner=user).order_by("-created_at").first()
    return own or usable.order_by("-created_at").first() or demo_provider()


def demo_provider() -> Provider:
    return Provider.objects.get_or_create(
        kind=ProviderKind.DEMO, owner=None, defaults={"name": DEMO_NAME}
    )[0]


def is_scripted(session: AgentSession) -> bool:
    """Whether pages must say that this session's replies are scripted."""
    return provider_for(session).kind == ProviderKind.DEMO


def upstream_url(provider: Provider) -> str:
    """Where to send calls; empty for the demo model, which the gateway hosts."""
    if provider.kind in (ProviderKind.ANTHROPIC, ProviderKind.SUBSCRIPTION):
        return provider.base_url or ANTHROPIC_URL
    return provider.base_url


@transaction.atomic
def save_provider(provider: Provider, user: User) -> Provider:
    is_new = provider._state.adding
    provider.save()
    _tell(provider, user, "added" if is_new else "changed")
    audit.record(
        "provider.created" if is_new else "provider.changed",
        actor=user,
        target=provider,
        name=provider.name,
    )
    return provider


@transaction.atomic
def delete_provider(provider: Provider, user: User) -> None:
    audit.record("provider.deleted", actor=user, target=provider, name=provider.name)
    _tell(provider, user, "removed")
    provider.delete()


def _tell(provider: Provider, user: User, action: str) -> None:
    tracking.record(
        "provider.configured", user=user, provider=provider.kind, action=action
    )


def record_test(provider: Provider, *, error: str, models: list[str]) -> None:
    provider.tested_at = timezone.now()
    provider.test_error = clean_text(error)
    if models:
        provider.models_found = clean_json(models)
    provider.save(update_fields=["tested_at", "test_error", "models_found"])
