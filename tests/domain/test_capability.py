"""What is known of a model, and whose word stands."""

from __future__ import annotations

from typing import Any

import pytest

from agents.domain import capability
from agents.domain.capability import capability_of, record_found
from agents.models import AuditEntry, ModelCapability, User
from agents.models.capability import CapabilitySource

pytestmark = pytest.mark.django_db
CLI, OBSERVED = CapabilitySource.CLI, CapabilitySource.OBSERVED


def edit(name: str, user: User, **values: Any) -> None:
    row, _ = ModelCapability.objects.get_or_create(name=name)
    for feature, value in values.items():
        setattr(row, feature, value)
    capability.save_edited(row, values, user)


def test_nobody_knows_the_model() -> None:
    unknown = capability_of("llama-9:70b")

    assert unknown.is_unverified
    assert (unknown.native_tools, unknown.thinking, unknown.effort_levels) == (
        True,
        False,
        (),
    )
    assert (unknown.context_window, unknown.max_output) == (200_000, None)
    assert set(unknown.sources.values()) == {CapabilitySource.UNVERIFIED}


@pytest.mark.parametrize(
    ("model", "window", "max_output", "thinks"),
    [
        ("claude-opus-5-5", 1_000_000, 128_000, True),
        ("cc/claude-opus-5-5", 1_000_000, 128_000, True),
        ("claude-sonnet-4-5-20250929", 200_000, 64_000, True),
        ("claude-sonnet-4-5[1m]", 1_000_000, 64_000, True),
        ("claude-haiku-4-5", 200_000, 64_000, True),
        ("claude-next-9", 200_000, None, False),
    ],
)
def test_the_longest_beginning_in_the_table_counts(
    model: str, window: int, max_output: int | None, thinks: bool
) -> None:
    known = capability_of(model)

    assert not known.is_unverified
    assert (known.context_window, known.max_output) == (window, max_output)
    assert known.thinking is thinks
    assert known.sources["native_tools"] == CapabilitySource.TABLE


@pytest.mark.parametrize(
    ("model", "wanted", "sent"),
    [
        *(("claude-opus-5-5", each, each) for each in ("low", "medium", "high", "max")),
        ("claude-sonnet-4-6", "max", "max"),
        ("claude-sonnet-4-6", "xhigh", "high"),
        *(("claude-haiku-4-5", each, None) for each in ("low", "max")),
        *(("llama-9", each, None) for each in ("low", "medium", "high", "max")),
        ("claude-opus-5-5", "", None),
    ],
)
def test_effort_is_sent_only_where_it_is_known(
    model: str, wanted: str, sent: str | None
) -> None:
    assert capability_of(model).effort_for(wanted) == sent


def test_a_level_that_is_missing_falls_to_the_one_below() -> None:
    record_found("llama-9", CLI, effort_levels=["medium", "high"])

    known = capability_of("llama-9")
    assert [known.effort_for(each) for each in ("low", "high", "max")] == [
        None,
        "high",
        "high",
    ]


def test_the_list_beats_the_table_and_a_result_beats_the_list() -> None:
    assert record_found("claude-opus-5-5", CLI, effort_levels=["low"], max_output=1)
    assert record_found("claude-opus-5-5", OBSERVED, max_output=2)
    assert not record_found("claude-opus-5-5", CLI, max_output=3)

    known = capability_of("claude-opus-5-5")
    assert (known.effort_levels, known.max_output) == (("low",), 2)
    assert (known.sources["effort_levels"], known.sources["max_output"]) == (
        CLI,
        OBSERVED,
    )
    assert known.sources["vision"] == CapabilitySource.TABLE


def test_what_is_known_already_is_not_written_again(
    django_assert_num_queries: Any,
) -> None:
    facts = {"context_window": 500_000, "max_output": None}
    assert record_found("cc/llama-9", OBSERVED, **facts)

    with django_assert_num_queries(1):
        assert not record_found("llama-9", OBSERVED, **facts)


def test_a_persons_word_stands_until_it_is_taken_back(alice: User) -> None:
    record_found("llama-9", OBSERVED, context_window=8_000)
    edit("llama-9", alice, context_window=16_000, native_tools=False)

    assert not record_found("llama-9", OBSERVED, context_window=9_000)
    known = capability_of("llama-9")
    assert (known.context_window, known.native_tools) == (16_000, False)
    assert known.sources["native_tools"] == CapabilitySource.PERSON
    assert not known.is_unverified

    edit("llama-9", alice, context_window=None)
    assert capability_of("llama-9").context_window == 200_000
    assert record_found("llama-9", OBSERVED, context_window=9_000)
    assert capability_of("llama-9").context_window == 9_000
    assert AuditEntry.objects.filter(action="model.capability").count() == 2


def test_many_models_take_one_query(django_assert_num_queries: Any) -> None:
    record_found("llama-9", OBSERVED, context_window=8_000)

    with django_assert_num_queries(1):
        known = capability.capabilities_of(["cc/llama-9", "claude-opus-5-5", "x" * 999])

    assert [each.context_window for each in known.values()] == [
        8_000,
        1_000_000,
        200_000,
    ]


def test_names_of_any_length_can_be_found() -> None:
    assert record_found("x" * 999, OBSERVED, context_window=8_000)
    assert not record_found("", OBSERVED, context_window=8_000)
