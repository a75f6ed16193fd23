"""What the CLI tells of models, as we read it."""

from __future__ import annotations

from typing import Any

import pytest

from agents.execution.capability import facts_of_list, facts_of_usage

OPUS = {
    "value": "opus",
    "resolvedModel": "claude-opus-5-5",
    "supportsEffort": True,
    "supportedEffortLevels": ["max", "low", "unheard-of"],
    "supportsAdaptiveThinking": True,
}


@pytest.mark.parametrize(
    ("listed", "facts"),
    [
        (
            [OPUS, {**OPUS, "value": "default"}],
            {"claude-opus-5-5": {"effort_levels": ["low", "max"], "thinking": True}},
        ),
        (
            [{"value": "old", "supportsEffort": False}],
            {"old": {"effort_levels": []}},
        ),
        ([{"value": "default"}, {"value": 3}, "x", None], {}),
        (None, {}),
        ("models", {}),
    ],
)
def test_the_list_of_models_is_read_with_care(listed: Any, facts: Any) -> None:
    assert facts_of_list(listed) == facts


def test_the_numbers_of_a_result_count_unless_they_are_a_guess() -> None:
    known = {"contextWindow": 1_000_000, "maxOutputTokens": 128_000}
    usage = {
        "claude-opus-5-5": {**known, "costBasis": "list"},
        "llama-9": {**known, "costBasis": "unknown"},
        "odd": {"contextWindow": -1, "maxOutputTokens": True},
        "broken": None,
    }

    assert facts_of_usage(usage) == {
        "claude-opus-5-5": {"context_window": 1_000_000, "max_output": 128_000},
        "odd": {},
    }
    assert facts_of_usage(None) == {}
