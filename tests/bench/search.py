"""How long a search takes in a long history, on SQLite and on PostgreSQL.

`python -m tests.bench.search [--quick]` measures this alone.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.postgres import Cluster

from . import children
from .plan import QUICK, Plan
from .report import search_table


async def measure(plan: Plan, folder: Path, demo_url: str) -> dict[str, Any]:
    """Fill each database and search it; nothing else runs meanwhile."""
    return await asyncio.to_thread(_measure, plan, folder)


def _measure(plan: Plan, folder: Path) -> dict[str, Any]:
    cluster = Cluster()
    try:
        cluster.start()
        urls = {"sqlite": "", "postgresql": cluster.url()}
        return {
            name: _ask(plan, folder / f"search-{name}", url)
            for name, url in urls.items()
        }
    finally:
        cluster.stop()


def _ask(plan: Plan, folder: Path, url: str) -> Any:
    sizes = (plan.search_sessions, plan.search_messages, plan.search_rounds)
    return children.ask("search_alone", folder, url, *map(str, sizes))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.search")
    parser.add_argument("--quick", action="store_true", help="a glance")
    plan = QUICK if parser.parse_args().quick else Plan()
    folder = Path(tempfile.mkdtemp(prefix="os-bench-"))
    try:
        print(search_table(_measure(plan, folder)))  # noqa: T201  what it is for
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
