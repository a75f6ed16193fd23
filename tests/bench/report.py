"""What was measured as tables, for a terminal and for `docs/performance.md` alike.

Works on the plain data that is published, so an old file can be shown again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .samples import Samples, percentile

BEGIN = "<!-- bench: begin; written by make bench -->"
END = "<!-- bench: end -->"
PERCENTS = (50, 95, 99)

AIM_SESSIONS = 10
AIM_ADDED_MS = {50: 60, 95: 120}
AIM_COLD_RATIO = 1.15
AIM_SESSION_MB = 3.0
AIM_STOP_MS = 2000

Row = Sequence[str]


def tables(measured: dict[str, Any]) -> str:
    """Whatever was measured, as Markdown tables with their headings."""
    makers: list[tuple[str, str, Callable[[Any], str]]] = [
        ("streaming", "From the model to the page", _streaming),
        ("first_token", "First word after Send", _first_token),
        ("stop", "Stop", _stop),
        ("streaming", "Memory of the server", lambda found: _memory(found["memories"])),
        ("gateway", "The gateway alone", _gateway),
        ("search", "Search in the history", search_table),
    ]
    parts = [
        (title, table(measured[name]))
        for name, title, table in makers
        if name in measured
    ]
    if aims := _aims(measured):
        parts.insert(0, ("Against the aims", aims))
    return "\n\n".join(f"### {title}\n\n{table}" for title, table in parts)


def results(measured: dict[str, Any], raw_name: str) -> str:
    """The part of the document between the markers."""
    return "\n\n".join(
        [
            _provenance(measured, raw_name),
            tables(measured),
        ]
    )


def with_results(document: str, found: str) -> str:
    """The document with `found` between its markers.

    Raises: ValueError: it has no markers, or more than one pair.
    """
    if document.count(BEGIN) != 1 or document.count(END) != 1:
        raise ValueError("the document needs one pair of markers")
    before, _, rest = document.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{found}\n\n{END}{after}"


def markdown_table(header: Row, rows: Iterable[Row]) -> str:
    """Columns as wide as their longest cell; all but the first to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    rule = [
        "-" * width if at == 0 else "-" * (width - 1) + ":"
        for at, width in enumerate(widths)
    ]
    lines.insert(1, rule)
    return "\n".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if at == 0 else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def at_percents(distribution: dict[str, Any]) -> dict[int, float]:
    """The percentiles shown here, from a distribution as `Samples.as_json` gives it."""
    if "values_ms" in distribution:
        samples = Samples.of(distribution["values_ms"])
        return {percent: samples.at(percent) for percent in PERCENTS}
    return {percent: distribution["percentiles_ms"][percent] for percent in PERCENTS}


def median(values: Iterable[float]) -> float:
    return percentile(sorted(values), 50)


def _streaming(found: dict[str, Any]) -> str:
    rows = []
    for product, alone in zip(found["product"], found["sdk_alone"], strict=True):
        ours, theirs = (at_percents(each["latency"]) for each in (product, alone))
        rows.append(
            [
                str(product["sessions"]),
                _triple(ours),
                _triple(theirs),
                _triple({p: ours[p] - theirs[p] for p in PERCENTS}),
                " / ".join(f"{ours[p] / theirs[p]:.1f}" for p in PERCENTS),
                f"{product['cpu_percent']} + {product['cli_cpu_percent']}",
                f"{alone['cpu_percent']} + {alone['cli_cpu_percent']}",
            ]
        )
    header = ["sessions", "OpenSwarm, ms", "SDK alone, ms", "added, ms", "ratio"]
    cpu = ["CPU %: server + CLIs", "CPU %: SDK + CLIs"]
    return markdown_table([*header, *cpu], rows)


def _triple(values: dict[int, float]) -> str:
    return " / ".join(f"{values[percent]:.0f}" for percent in PERCENTS)


def _first_token(found: dict[str, Any]) -> str:
    product, alone = found["product"], found["sdk_alone"]
    rows = []
    for kind, name in (("cold_ms", "cold: new session"), ("warm_ms", "warm: next one")):
        ours, theirs = median(product[kind]), median(alone[kind])
        rows.append(
            [name, _range(product[kind]), _range(alone[kind]), f"{ours / theirs:.2f}"]
        )
    return markdown_table(["", "OpenSwarm, ms", "SDK alone, ms", "ratio"], rows)


def _stop(found: dict[str, Any]) -> str:
    row = ["until no process is left", _range(found["gone_ms"])]
    return markdown_table(["", "OpenSwarm, ms"], [row])


def _range(values: Sequence[float]) -> str:
    return f"{median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def search_table(found: dict[str, Any]) -> str:
    """p50 / p95 in ms of one page of results, by what was asked for."""
    names = list(found)
    rows = [
        [kind, *(_search_cell(found[name]["kinds"][kind]) for name in names)]
        for kind in found[names[0]]["kinds"]
    ]
    filled = [str(found[name]["seed_seconds"]) for name in names]
    rows.append(["filling it, s", *filled])
    return markdown_table(["query", *names], rows)


def _search_cell(distribution: dict[str, Any]) -> str:
    values = at_percents(distribution)
    return f"{values[50]:.0f} / {values[95]:.0f}"


def _memory(weighed: Sequence[dict[str, int]]) -> str:
    rows = [
        [
            str(each["sessions"]),
            f"{each['rss_kb'] / 1024:.1f}",
            f"{each['pss_kb'] / 1024:.1f}",
            _per_session(weighed[0], each),
            _per_session(before, each),
        ]
        for before, each in zip([weighed[0], *weighed], weighed, strict=False)
    ]
    per_session = ["MB per session", "MB per further session"]
    return markdown_table(["sessions", "RSS, MB", "PSS, MB", *per_session], rows)


def _per_session(before: dict[str, int], now: dict[str, int]) -> str:
    grown = session_mb(before, now)
    return "" if grown is None else f"{grown:.1f}"


def session_mb(before: dict[str, int], now: dict[str, int]) -> float | None:
    """Growth of PSS per session between two looks; None where none was added."""
    added = now["sessions"] - before["sessions"]
    return (now["pss_kb"] - before["pss_kb"]) / 1024 / added if added else None


def _gateway(found: Sequence[dict[str, Any]]) -> str:
    rows = []
    for each in found:
        direct, through = at_percents(each["direct"]), at_percents(each["through"])
        added = " / ".join(f"{through[p] - direct[p]:.2f}" for p in PERCENTS)
        rows.append([str(each["streams"]), _fine(direct), _fine(through), added])
    return markdown_table(
        ["streams", "direct, ms", "through the gateway, ms", "added, ms"], rows
    )


def _fine(values: dict[int, float]) -> str:
    return " / ".join(f"{values[percent]:.2f}" for percent in PERCENTS)


def _aims(measured: dict[str, Any]) -> str:
    """What was not measured is left out; empty where nothing of it was."""
    rows: list[Row] = []
    if "streaming" in measured:
        rows += _latency_aims(measured["streaming"])
        rows.append(_memory_aim(measured["streaming"]["memories"]))
    if "first_token" in measured:
        rows.append(_cold_aim(measured["first_token"]))
    if "stop" in measured:
        slowest = max(measured["stop"]["gone_ms"])
        rows.append(_verdict("Stop, the slowest", AIM_STOP_MS, slowest, "ms", digits=0))
    return markdown_table(["aim", "wanted", "measured", ""], rows) if rows else ""


def _latency_aims(found: dict[str, Any]) -> list[Row]:
    rows: list[Row] = []
    for product, alone in zip(found["product"], found["sdk_alone"], strict=True):
        if product["sessions"] != AIM_SESSIONS:
            continue
        ours, theirs = at_percents(product["latency"]), at_percents(alone["latency"])
        for percent, aim in AIM_ADDED_MS.items():
            added = ours[percent] - theirs[percent]
            name = f"added to p{percent} with {AIM_SESSIONS} sessions"
            rows.append(_verdict(name, aim, added, "ms", digits=0))
    return rows


def _memory_aim(weighed: Sequence[dict[str, int]]) -> Row:
    grown = session_mb(weighed[0], weighed[-1]) or 0.0
    return _verdict("memory per live session", AIM_SESSION_MB, grown, "MB")


def _cold_aim(found: dict[str, Any]) -> Row:
    cold = median(found["product"]["cold_ms"]) / median(found["sdk_alone"]["cold_ms"])
    return _verdict("first word, cold", AIM_COLD_RATIO, cold, "x the SDK alone")


def _verdict(
    name: str, aim: float, value: float, unit: str, *, digits: int = 2
) -> list[str]:
    verdict = "met" if value <= aim else "missed"
    return [name, f"<= {aim:g} {unit}", f"{value:.{digits}f} {unit}", verdict]


def _provenance(measured: dict[str, Any], raw_name: str) -> str:
    machine, plan = measured["machine"], measured["plan"]
    jail = "in the jail" if machine["jailed"] else "without the jail"
    packages = ", ".join(f"{n} {v}" for n, v in machine["packages"].items())
    return (
        f"Measured on {measured['measured_at'][:10]} in one run of"
        f" {measured['took_seconds']} s on {machine['cores']} cores ({machine['cpu']},"
        f" {machine['memory_gb']} GB, {machine['system']}), load"
        f" {machine['load_before']} before it began. Python {machine['python']},"
        f" {packages}, CLI {machine['cli']}; agents {jail}. Streams of"
        f" {plan['stream_seconds']:g} s, {plan['first_token_rounds']} rounds of first"
        f" words (median, least and most). Raw data:"
        f" [{raw_name}](performance/{raw_name})."
    )
