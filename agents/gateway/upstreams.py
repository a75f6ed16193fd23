"""From a provider's row to the upstream of a line."""

from __future__ import annotations

from dataclasses import replace

from agents.domain.providers import provider_for, upstream_url
from agents.models import AgentSession, Provider

from .lines import Upstream


def resolve_upstream(session: AgentSession) -> Upstream:
    """The upstream that a session's calls go to now. Queries the database."""
    return replace(
        upstream_of(provider_for(session)),
        temperature=session.temperature,
        allowed_models=tuple(session.owner.allowed_models.split()),
    )


def upstream_of(provider: Provider) -> Upstream:
    return Upstream(
        provider_id=provider.pk,
        kind=provider.kind,
        base_url=upstream_url(provider),
        api_key=provider.api_key,
        model_prefix=provider.model_prefix,
        bare=provider.bare,
        allow_private=_is_vouched_for(provider),
    )


def _is_vouched_for(provider: Provider) -> bool:
    """Site-wide providers are only ever written by the owner."""
    return provider.owner is None or provider.owner.is_owner
