"""What the CLI tells of models: its list at the start, and numbers of each result."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from claude_agent_sdk import ClaudeSDKClient, ResultMessage

from agents.domain.capability import EFFORTS, record_found
from agents.models.capability import CapabilitySource

from .database import in_database

logger = logging.getLogger(__name__)

Facts = dict[str, Any]


def facts_of_list(models: Any) -> dict[str, Facts]:
    """From the list of `get_server_info()`: facts by the name of the model.

    Several short names may stand for one model; what is missing is not known.
    """
    found: dict[str, Facts] = {}
    for entry in models if isinstance(models, list) else []:
        if not isinstance(entry, Mapping):
            continue
        name = entry.get("resolvedModel") or entry.get("value")
        if isinstance(name, str) and name and name != "default":
            found[name] = _facts_of_entry(entry)
    return found


def _facts_of_entry(entry: Mapping[str, Any]) -> Facts:
    facts: Facts = {}
    if entry.get("supportsEffort") is False:
        facts["effort_levels"] = []
    elif isinstance(levels := entry.get("supportedEffortLevels"), list):
        facts["effort_levels"] = [level for level in EFFORTS if level in levels]
    if entry.get("supportsAdaptiveThinking") is True:
        facts["thinking"] = True
    return facts


def facts_of_usage(usage: Any) -> dict[str, Facts]:
    """From `model_usage` of a result: the window and the longest answer, by model.

    For a model that the CLI doesn't know it states a guess, which says nothing.
    """
    found: dict[str, Facts] = {}
    for name, row in usage.items() if isinstance(usage, Mapping) else ():
        if not isinstance(row, Mapping) or row.get("costBasis") == "unknown":
            continue
        numbers = {
            "context_window": _number(row.get("contextWindow")),
            "max_output": _number(row.get("maxOutputTokens")),
        }
        found[str(name)] = {key: value for key, value in numbers.items() if value}
    return found


def _number(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value < 2**31 else None


async def learn_from_client(sdk: ClaudeSDKClient) -> None:
    """Keep what a connected CLI knows of its models; a failure costs nothing else."""
    try:
        info = await sdk.get_server_info()
        found = facts_of_list((info or {}).get("models"))
        await in_database(_record, found, CapabilitySource.CLI)
    except Exception:
        logger.exception("the CLI's list of models could not be kept")


async def learn_from_result(result: ResultMessage) -> None:
    found = facts_of_usage(result.model_usage)
    await in_database(_record, found, CapabilitySource.OBSERVED)


def _record(found: Mapping[str, Facts], source: CapabilitySource) -> None:
    for name, facts in found.items():
        if facts:
            record_found(name, source, **facts)
