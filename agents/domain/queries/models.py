"""Models to choose from: by provider, with what is known of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from agents.conf import conf
from agents.domain.capability import (
    Capability,
    alias_table,
    capabilities_of,
    listed_models,
)
from agents.domain.model_choice import (
    check_allowed,
    choose_model,
    expand_alias,
    offered_models,
)
from agents.domain.providers import default_provider, provider_for
from agents.errors import InvalidInputError
from agents.models import AgentSession, Provider, User
from agents.models.providers import ProviderKind
from agents.rendering.figures import round_tokens

SHORT_NAMES = "Short names"


@dataclass(frozen=True, slots=True)
class ModelOption:
    name: str
    capability: Capability
    meaning: str = ""
    """The model that a short name stands for."""

    @property
    def marks(self) -> list[str]:
        """What to know before choosing it."""
        known = self.capability
        marks = [self.meaning, f"{round_tokens(known.context_window)} context"]
        if not known.native_tools:
            marks.append("no tools")
        if known.is_unverified:
            marks.append("unverified")
        return [mark for mark in marks if mark]

    @property
    def label(self) -> str:
        return f"{self.name} ({', '.join(self.marks)})"


@dataclass(frozen=True, slots=True)
class ModelGroup:
    title: str
    options: tuple[ModelOption, ...]


def load_models(user: User) -> list[ModelGroup]:
    """What the person's providers offer, for a session that is still to be made."""
    usable = Provider.objects.visible_to(user).filter(is_enabled=True)
    found = usable.exclude(kind=ProviderKind.DEMO).order_by("name")
    return _groups(list(found) or [default_provider(user)], user)


def load_session_models(session: AgentSession, user: User) -> list[ModelGroup]:
    """What the session's provider offers to its owner and to who sends."""
    return _groups([provider_for(session)], session.owner, user)


def session_model_label(session: AgentSession) -> str:
    """The model that the session uses unless a message says otherwise, and why."""
    choice = choose_model(session)
    if choice.chosen_by == "session" and session.model_set_by is not None:
        return f"{choice.model}, chosen by {session.model_set_by.get_username()}"
    return f"{choice.model}, {_CHOSEN_BY[choice.chosen_by]}"


_CHOSEN_BY = {
    "message": "for this message",
    "session": "of this session",
    "person": "the owner’s default",
    "site": "the site’s default",
}


@dataclass(frozen=True, slots=True)
class ProviderCard:
    provider: Provider
    models: tuple[ModelOption, ...]


def load_cards(providers: Iterable[Provider]) -> list[ProviderCard]:
    """Providers with the models that each offers; one query more than theirs."""
    offers = [(provider, offered_models(provider)) for provider in providers]
    known = capabilities_of(chain(*(names for _, names in offers)))
    return [
        ProviderCard(provider, tuple(ModelOption(name, known[name]) for name in names))
        for provider, names in offers
    ]


def _groups(providers: list[Provider], *users: User) -> list[ModelGroup]:
    offers = {provider: _offer(provider) for provider in providers}
    short = _short_names(providers[0])
    known = capabilities_of({*chain(*offers.values()), *short.values()})
    groups = [
        ModelGroup(
            SHORT_NAMES,
            tuple(
                ModelOption(alias, known[model], model)
                for alias, model in short.items()
                if _is_allowed(model, users)
            ),
        )
    ]
    for provider, names in offers.items():
        options = (
            ModelOption(name, known[name]) for name in names if _is_allowed(name, users)
        )
        groups.append(ModelGroup(provider.name, tuple(options)))
    return [group for group in groups if group.options]


def _offer(provider: Provider) -> list[str]:
    """A gateway that lists nothing may have anything; others have what we know."""
    offered = offered_models(provider)
    if offered or provider.kind == ProviderKind.GATEWAY:
        return offered
    return sorted({*listed_models(), conf().default_model})


def _short_names(provider: Provider) -> dict[str, str]:
    offered = offered_models(provider)
    if provider.kind == ProviderKind.GATEWAY and not offered:
        return {}
    meant = {alias: expand_alias(alias, provider) for alias in alias_table()}
    return {
        alias: model
        for alias, model in meant.items()
        if model != alias and (not offered or model in offered)
    }


def _is_allowed(model: str, users: Iterable[User]) -> bool:
    try:
        for user in users:
            check_allowed(model, user)
    except InvalidInputError:
        return False
    return True
