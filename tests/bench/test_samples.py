"""Percentiles, and how many values a distribution keeps."""

from __future__ import annotations

import pytest

from .samples import Samples, percentile


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 10), (25, 20), (50, 30), (95, 48), (100, 50)]
)
def test_a_percentile_lies_between_its_neighbours(percent: int, value: float) -> None:
    assert percentile([10, 20, 30, 40, 50], percent) == pytest.approx(value)


def test_all_percentiles_of_one_value_are_that_value() -> None:
    assert percentile([7], 99) == 7


def test_nothing_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        percentile([], 50)


@pytest.mark.parametrize("percent", [-1, 101])
def test_there_is_no_percentile_outside_of_all(percent: int) -> None:
    with pytest.raises(ValueError, match="no percentage"):
        percentile([1, 2], percent)


def test_samples_come_in_any_order() -> None:
    assert Samples.of([3, 1, 2]).values == (1, 2, 3)
    assert Samples.of([3, 1, 2]).median == 2


def test_few_samples_are_kept_as_they_are() -> None:
    kept = Samples.of([2.004, 1]).as_json()

    assert kept == {"count": 2, "values_ms": [1, 2.0]}


def test_many_samples_are_kept_as_percentiles() -> None:
    kept = Samples.of(range(1001)).as_json()

    assert kept["count"] == 1001
    assert kept["percentiles_ms"] == [float(each * 10) for each in range(101)]
