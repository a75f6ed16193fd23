"""`python -m tests.bench`: measure, print the tables, and publish them.

Published are `docs/performance/<date>-<cores>c.json`, with what was measured, and the
tables in `docs/performance.md`. `--quick` takes a glance, `--only` measures some parts;
both publish nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.server import ROOT

from . import children, first_token, gateway, report, search, stop, streaming
from .plan import QUICK, Plan

DOCUMENT = ROOT / "docs" / "performance.md"
RAW_FOLDER = ROOT / "docs" / "performance"

Measure = Callable[[Plan, Path, str], Awaitable[Any]]
PARTS: dict[str, Measure] = {
    "first_token": first_token.measure,
    "streaming": streaming.measure,
    "stop": stop.measure,
    "gateway": gateway.measure,
    "search": search.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a glance, unpublished")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, help="these parts, unpublished"
    )
    asked = parser.parse_args()
    plan, names = QUICK if asked.quick else Plan(), asked.only or list(PARTS)
    folder = Path(tempfile.mkdtemp(prefix="os-bench-"))
    try:
        measured = asyncio.run(_measure(plan, names, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _print(report.tables(measured))
    if not asked.quick and not asked.only:
        _publish(measured)


async def _measure(plan: Plan, names: list[str], folder: Path) -> dict[str, Any]:
    started = time.monotonic()
    found: dict[str, Any] = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": children.ask("machine", folder / "machine"),
        "plan": plan.as_json(),
    }
    with children.child("demo_alone", folder / "demo") as demo:
        for name in names:
            _say(f"measuring: {name.replace('_', ' ')} ...")
            found[name] = await PARTS[name](plan, folder, demo["url"])
    found["took_seconds"] = round(time.monotonic() - started)
    return found


def _publish(measured: dict[str, Any]) -> None:
    RAW_FOLDER.mkdir(exist_ok=True)
    day = measured["measured_at"][:10]
    raw = RAW_FOLDER / f"{day}-{measured['machine']['cores']}c.json"
    raw.write_text(json.dumps(measured, indent=1) + "\n")
    document = DOCUMENT.read_text()
    DOCUMENT.write_text(
        report.with_results(document, report.results(measured, raw.name))
    )
    _say(f"Written: {raw.relative_to(ROOT)} and {DOCUMENT.relative_to(ROOT)}")


def _print(text: str) -> None:
    print(text)  # noqa: T201  what the command is for


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201  progress


if __name__ == "__main__":
    main()
