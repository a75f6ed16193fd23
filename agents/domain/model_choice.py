"""Which model a run uses: message, then session, then person, then site."""

from __future__ import annotations

from agents.conf import conf
from agents.models import AgentSession, Provider
from agents.models.providers import ProviderKind

from .accounts import preferences_of


def get_session_model(session: AgentSession) -> str:
    """The model name as chosen, before aliases and prefixes."""
    return (
        session.model
        or preferences_of(session.owner).default_model
        or conf().default_model
    )


def cheap_model(session: AgentSession, provider: Provider) -> str:
    """A small model of `provider`, as it calls it, for titles and the like.

    A gateway that has not said what it offers may have no small one: there the
    session's own does.
    """
    offered = [str(name) for name in provider.models_found]
    small = [name for name in offered if "haiku" in name.lower()]
    if small:
        return max(small)
    if provider.kind == ProviderKind.GATEWAY:
        return resolve_model_id(get_session_model(session), provider)
    return resolve_model_id(conf().cheap_model, provider)


def resolve_model_id(model: str, provider: Provider) -> str:
    """The name that `provider` knows the model by: its prefix once in front."""
    prefix = provider.model_prefix
    return model if not prefix or model.startswith(prefix) else prefix + model
