"""The bench's own helper processes: each says one line of JSON, and ends with us.

They end when their standard input closes, which the kernel does even if the bench is
killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.server import ROOT, clean_environment

END_SECONDS = 15


@contextmanager
def child(module: str, data_dir: Path, *arguments: str) -> Iterator[dict[str, Any]]:
    """Run `tests.bench.<module>` while the block runs; gives what it said first."""
    process = _start(module, data_dir, arguments)
    try:
        yield _answer(process, module)
    finally:
        _end(process)


def ask(module: str, data_dir: Path, *arguments: str) -> Any:
    """Run `tests.bench.<module>` to its end; gives what it said."""
    with child(module, data_dir, *arguments) as said:
        return said


def say(answer: Any) -> None:
    """The other end: what a child says."""
    print(json.dumps(answer), flush=True)  # noqa: T201  the pipe to the bench


def _start(
    module: str, data_dir: Path, arguments: tuple[str, ...]
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.bench.{module}", *arguments],
        cwd=ROOT,
        env=clean_environment(data_dir, DJANGO_SETTINGS_MODULE="openswarm.settings"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _answer(process: subprocess.Popen[str], module: str) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{module} ended without an answer")
    return json.loads(line)


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
