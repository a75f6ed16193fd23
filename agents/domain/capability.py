"""What a model can do: our table, corrected by the CLI, by results and by people.

A row of `ModelCapability` holds what machines found and people set; the table stands
below it, and below that what is taken of a model that nobody knows.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from django.db import transaction

from agents.models import ModelCapability, User
from agents.models.capability import CapabilitySource
from agents.models.fields import fitting

from . import audit

MODELS_FILE = Path(__file__).with_name("models.toml")
LARGE_SUFFIX = "[1m]"
LARGE_WINDOW = 1_000_000
EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
FEATURES: Final = (
    "native_tools",
    "thinking",
    "effort_levels",
    "vision",
    "streaming",
    "context_window",
    "max_output",
)
# A model that nobody knows is given tools, and asked neither to think nor for effort.
_ASSUMED: Final[Mapping[str, Any]] = {
    "native_tools": True,
    "thinking": False,
    "effort_levels": [],
    "vision": False,
    "streaming": True,
    "context_window": 200_000,
    "max_output": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """What one model can do, and who says so of each feature."""

    name: str
    native_tools: bool
    thinking: bool
    effort_levels: tuple[str, ...]
    vision: bool
    streaming: bool
    context_window: int
    max_output: int | None
    sources: Mapping[str, CapabilitySource]

    @property
    def is_unverified(self) -> bool:
        """Whether nobody has said of this model what the pages show of it."""
        said = (self.sources["native_tools"], self.sources["context_window"])
        return CapabilitySource.UNVERIFIED in said

    def effort_for(self, wanted: str) -> str | None:
        """The highest level that it knows and that is not above `wanted`, if any."""
        if wanted not in EFFORTS:
            return None
        up_to = EFFORTS[: EFFORTS.index(wanted) + 1]
        known = [level for level in up_to if level in self.effort_levels]
        return known[-1] if known else None


@lru_cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads(MODELS_FILE.read_text())


def alias_table() -> dict[str, str]:
    """The short names that everybody knows, with the models they mean."""
    return dict(_table()["aliases"])


def listed_models() -> list[str]:
    """The models that the aliases mean; the table itself knows beginnings only."""
    return sorted(set(alias_table().values()))


def plain_name(model: str) -> str:
    """A model's name without what a gateway puts before it, or the window after."""
    return model.rsplit("/", 1)[-1].removesuffix(LARGE_SUFFIX)


def capability_of(model: str) -> Capability:
    """One query."""
    name = plain_name(model)
    row = ModelCapability.objects.filter(name=name).first() if name else None
    return _merged(model, row)


def capabilities_of(models: Iterable[str]) -> dict[str, Capability]:
    """For many models at once, by the names as given; one query."""
    asked = list(models)
    rows = ModelCapability.objects.filter(name__in={plain_name(name) for name in asked})
    by_name = {row.name: row for row in rows}
    return {name: _merged(name, by_name.get(plain_name(name))) for name in asked}


def _merged(model: str, row: ModelCapability | None) -> Capability:
    name = plain_name(model)
    listed = _in_table(name)
    values, sources = dict(_ASSUMED), dict.fromkeys(FEATURES, _UNVERIFIED)
    for feature in FEATURES:
        found = getattr(row, feature, None)
        if found is not None and row is not None:
            values[feature], sources[feature] = found, _source(row, feature)
        elif feature in listed:
            values[feature] = listed[feature]
            sources[feature] = CapabilitySource.TABLE
    if model.endswith(LARGE_SUFFIX):
        values["context_window"] = LARGE_WINDOW
        sources["context_window"] = CapabilitySource.TABLE
    values["effort_levels"] = tuple(values["effort_levels"])
    return Capability(name=name, sources=sources, **values)


_UNVERIFIED = CapabilitySource.UNVERIFIED


def _source(row: ModelCapability, feature: str) -> CapabilitySource:
    try:
        return CapabilitySource(row.sources[feature])
    except (KeyError, ValueError):
        return _UNVERIFIED


def _in_table(name: str) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = _table()["models"]
    matching = [prefix for prefix in rows if name.startswith(prefix)]
    return rows[max(matching, key=len)] if matching else {}


def record_found(model: str, source: CapabilitySource, **facts: Any) -> bool:
    """Keep what a machine found; what a stronger source said stays.

    Returns: whether anything was new.
    """
    name = fitting(ModelCapability, name=plain_name(model))["name"]
    facts = {feature: fact for feature, fact in facts.items() if fact is not None}
    row = ModelCapability.objects.filter(name=name).first()
    if not name or not _news(row or ModelCapability(name=name), source, facts):
        return False
    with transaction.atomic():
        ModelCapability.objects.get_or_create(name=name)
        row = ModelCapability.objects.select_for_update(no_key=True).get(name=name)
        for feature, fact in _news(row, source, facts).items():
            setattr(row, feature, fact)
            row.sources[feature] = source.value
        row.save()
    return True


def _news(
    row: ModelCapability, source: CapabilitySource, facts: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        feature: fact
        for feature, fact in facts.items()
        if source.rank >= (known := _source(row, feature)).rank
        and (known, getattr(row, feature)) != (source, fact)
    }


@transaction.atomic
def save_edited(row: ModelCapability, changed: Iterable[str], user: User) -> None:
    """A person's word stands until a person takes it back; an empty one is none."""
    features = [feature for feature in FEATURES if feature in set(changed)]
    for feature in features:
        if getattr(row, feature) is None:
            row.sources.pop(feature, None)
        else:
            row.sources[feature] = CapabilitySource.PERSON.value
    row.save()
    audit.record(
        "model.capability", actor=user, target=row, name=row.name, changed=features
    )
