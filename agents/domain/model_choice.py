"""Which model a run uses: message, then session, then person, then site.

Names go in as people write them ("opus", "claude-opus-5-5[1m]") and come out as the
provider knows them (`resolve_model_id`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from agents.conf import conf
from agents.errors import InvalidInputError
from agents.models import AgentSession, Provider, User
from agents.models.providers import ProviderKind

from .accounts import preferences_of
from .capability import LARGE_SUFFIX, alias_table, plain_name

DEFAULT_ALIAS = "default"
NAMES_SHOWN = 8
ChosenBy = Literal["message", "session", "person", "site"]
# A dated version of a model, or the alias of the newest one, is the same model.
_VERSION = re.compile(r"-(\d{8}|latest)$")


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model's name as it was chosen, and which of the four levels chose it."""

    model: str
    chosen_by: ChosenBy


def choose_model(session: AgentSession, message_model: str = "") -> ModelChoice:
    """The first of the four levels that says anything."""
    if message_model:
        return ModelChoice(message_model, "message")
    if session.model:
        return ModelChoice(session.model, "session")
    preferred = preferences_of(session.owner).default_model
    if preferred:
        return ModelChoice(preferred, "person")
    return ModelChoice(conf().default_model, "site")


def get_session_model(session: AgentSession) -> str:
    """The model name as chosen, before aliases and prefixes."""
    return choose_model(session).model


def resolve_model_id(model: str, provider: Provider) -> str:
    """The name that `provider` knows the model by: no alias, its prefix in front."""
    name = expand_alias(model, provider)
    prefix = provider.model_prefix
    return name if not prefix or name.startswith(prefix) else prefix + name


def expand_alias(model: str, provider: Provider) -> str:
    """The model that a short name means here; any other name as it is.

    Where the provider has another model of that family only, it is that one.
    """
    name = model.removesuffix(LARGE_SUFFIX)
    suffix = model[len(name) :]
    alias = name.lower()
    if alias == DEFAULT_ALIAS:
        return expand_alias(conf().default_model, provider)
    meant = alias_table().get(alias)
    if meant is None or alias in offered_models(provider):
        return model
    offered = offered_models(provider)
    if not offered or any(is_same_model(meant, each) for each in offered):
        return meant + suffix
    family = [each for each in offered if alias in each.lower()]
    return (max(family) if family else meant) + suffix


def offered_models(provider: Provider) -> list[str]:
    """The names that the provider listed and people entered, without its prefix."""
    names = [str(name) for name in (*provider.models_found, *provider.models_typed)]
    prefix = provider.model_prefix
    return list(dict.fromkeys(name.removeprefix(prefix) for name in names))


def is_same_model(asked: str, answered: str) -> bool:
    """Whether both names mean one model: prefixes, windows and dates don't count."""
    return _bare(asked) == _bare(answered)


def _bare(model: str) -> str:
    return _VERSION.sub("", plain_name(model))


def check_model(model: str, provider: Provider, *users: User) -> None:
    """Refuse a model that its provider doesn't list, or that somebody may not use.

    A provider that listed nothing takes any name.

    Raises: InvalidInputError.
    """
    name = expand_alias(model, provider)
    offered = offered_models(provider)
    if provider.models_found and not any(is_same_model(name, each) for each in offered):
        raise InvalidInputError(
            f"{provider.name} does not offer “{model}”. It offers {_some(offered)}.",
            field="model",
        )
    for user in users:
        check_allowed(name, user)


def check_allowed(model: str, user: User) -> None:
    """Raises: InvalidInputError when an owner has not left this model to the person."""
    patterns = user.allowed_models.split()
    if not is_allowed(model, patterns):
        raise InvalidInputError(
            f"{user.get_username()} may not use “{model}”, only {_some(patterns)}.",
            field="model",
        )


def is_allowed(model: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern fits, with or without a date; no patterns leave every model."""
    names = {plain_name(model), _bare(model)}
    return not patterns or any(
        fnmatchcase(name, pattern) for name in names for pattern in patterns
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


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
