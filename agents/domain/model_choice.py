"""Which model a run uses: message, then session, then person, then site."""

from __future__ import annotations

from agents.conf import conf
from agents.models import AgentSession, Provider

from .accounts import preferences_of


def get_session_model(session: AgentSession) -> str:
    """The model name as chosen, before aliases and prefixes."""
    return (
        session.model
        or preferences_of(session.owner).default_model
        or conf().default_model
    )


def resolve_model_id(model: str, provider: Provider) -> str:
    """The name that `provider` knows the model by: its prefix once in front."""
    prefix = provider.model_prefix
    return model if not prefix or model.startswith(prefix) else prefix + model
