"""The tables, from numbers that are made up."""

from __future__ import annotations

from typing import Any

import pytest

from .report import (
    BEGIN,
    END,
    at_percents,
    markdown_table,
    median,
    results,
    session_mb,
    tables,
    with_results,
)


def flat(milliseconds: float) -> dict[str, Any]:
    return {"count": 500, "percentiles_ms": [milliseconds] * 101}


def streams(sessions: int, milliseconds: float) -> dict[str, Any]:
    return {
        "sessions": sessions,
        "latency": flat(milliseconds),
        "cpu_percent": 50,
        "cli_cpu_percent": 60,
    }


@pytest.fixture
def measured() -> dict[str, Any]:
    return {
        "measured_at": "2026-01-02T03:04:05+00:00",
        "took_seconds": 200,
        "machine": {
            "cores": 2,
            "cpu": "A CPU",
            "memory_gb": 8.0,
            "load_before": 0.1,
            "system": "Linux 6.1",
            "python": "3.11.7",
            "cli": "2.1.332",
            "jailed": True,
            "packages": {"Django": "5.2"},
        },
        "plan": {"stream_seconds": 12, "first_token_rounds": 7},
        "first_token": {
            "product": {"cold_ms": [1300, 1200, 1100], "warm_ms": [90, 80, 100]},
            "sdk_alone": {"cold_ms": [1000, 900, 1100], "warm_ms": [45, 40, 50]},
        },
        "streaming": {
            "product": [streams(1, 30), streams(10, 90)],
            "sdk_alone": [streams(1, 10), streams(10, 20)],
            "memories": [
                {"sessions": 0, "rss_kb": 102_400, "pss_kb": 92_160},
                {"sessions": 1, "rss_kb": 106_496, "pss_kb": 96_256},
                {"sessions": 10, "rss_kb": 122_880, "pss_kb": 112_640},
            ],
        },
        "stop": {"gone_ms": [300, 2500, 200]},
        "gateway": [{"streams": 1, "direct": flat(0.5), "through": flat(1.25)}],
    }


def rows(table: str) -> list[list[str]]:
    """The cells of a Markdown table, without its rule."""
    lines = [line[1:-1].split("|") for line in table.strip().splitlines()]
    return [[cell.strip() for cell in line] for line in [lines[0], *lines[2:]]]


def section(text: str, title: str) -> list[list[str]]:
    return rows(text.split(f"### {title}\n\n")[1].split("\n\n")[0])


def test_a_table_is_aligned() -> None:
    assert markdown_table(["name", "n"], [["a", "100"], ["longer", "1"]]) == (
        "| name   |   n |\n| ------ | --: |\n| a      | 100 |\n| longer |   1 |"
    )


def test_percentiles_are_read_from_either_form() -> None:
    few = {"count": 2, "values_ms": [1.0, 3.0]}
    many = {"count": 900, "percentiles_ms": [float(each) for each in range(101)]}

    assert at_percents(few) == pytest.approx({50: 2.0, 95: 2.9, 99: 2.98})
    assert at_percents(many) == {50: 50.0, 95: 95.0, 99: 99.0}


def test_a_median_needs_no_order() -> None:
    assert median([3, 1, 2]) == 2


def test_memory_is_told_per_added_session() -> None:
    before = {"sessions": 0, "rss_kb": 0, "pss_kb": 10_240}
    now = {"sessions": 5, "rss_kb": 0, "pss_kb": 20_480}

    assert session_mb(before, now) == 2.0
    assert session_mb(now, now) is None


def test_what_was_measured_is_held_against_the_aims(measured: dict[str, Any]) -> None:
    table = section(tables(measured), "Against the aims")

    assert [row[2:] for row in table[1:]] == [
        ["70 ms", "missed"],
        ["70 ms", "met"],
        ["2.00 MB", "met"],
        ["1.20 x the SDK alone", "missed"],
        ["2500 ms", "missed"],
    ]


def test_an_aim_about_a_level_that_was_not_measured_is_left_out(
    measured: dict[str, Any],
) -> None:
    for side in ("product", "sdk_alone"):
        measured["streaming"][side].pop()

    table = section(tables(measured), "Against the aims")

    assert [row[0] for row in table[1:]] == [
        "memory per live session",
        "first word, cold",
        "Stop, the slowest",
    ]


def test_parts_that_were_not_measured_are_left_out(measured: dict[str, Any]) -> None:
    del measured["streaming"], measured["first_token"], measured["stop"]

    assert tables(measured).startswith("### The gateway alone\n\n")
    assert tables(measured).count("###") == 1


def test_streams_stand_beside_their_baseline(measured: dict[str, Any]) -> None:
    table = section(tables(measured), "From the model to the page")

    assert table[2] == [
        *("10", "90 / 90 / 90", "20 / 20 / 20", "70 / 70 / 70", "4.5 / 4.5 / 4.5"),
        *("50 + 60", "50 + 60"),
    ]


def test_first_words_are_told_by_their_middle_and_their_range(
    measured: dict[str, Any],
) -> None:
    table = section(tables(measured), "First word after Send")

    assert table[1][1:] == ["1200 (1100 to 1300)", "1000 (900 to 1100)", "1.20"]
    assert table[2][1:] == ["90 (80 to 100)", "45 (40 to 50)", "2.00"]


def test_stop_is_told_by_its_middle_and_its_range(measured: dict[str, Any]) -> None:
    table = section(tables(measured), "Stop")

    assert table[1] == ["until no process is left", "300 (200 to 2500)"]


def test_memory_is_told_in_total_and_per_session(measured: dict[str, Any]) -> None:
    table = section(tables(measured), "Memory of the server")

    assert table[1:] == [
        ["0", "100.0", "90.0", "", ""],
        ["1", "104.0", "94.0", "4.0", "4.0"],
        ["10", "120.0", "110.0", "2.0", "1.8"],
    ]


def test_the_gateway_is_told_in_hundredths(measured: dict[str, Any]) -> None:
    table = section(tables(measured), "The gateway alone")

    assert table[1][3] == "0.75 / 0.75 / 0.75"


def test_results_replace_those_between_the_markers(measured: dict[str, Any]) -> None:
    document = f"# Title\n\n{BEGIN}\nstale figures\n{END}\n\nThe rest.\n"

    once = with_results(document, results(measured, "raw.json"))

    assert once.startswith(f"# Title\n\n{BEGIN}\n\nMeasured on 2026-01-02 in one run")
    assert once.endswith(f"{END}\n\nThe rest.\n")
    assert "stale" not in once
    assert with_results(once, results(measured, "raw.json")) == once


@pytest.mark.parametrize("document", ["", BEGIN, f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_document_without_one_place_for_results_is_an_error(document: str) -> None:
    with pytest.raises(ValueError, match="one pair of markers"):
        with_results(document, "found")
