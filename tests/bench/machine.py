"""The machine and the versions that the numbers belong to; asked in a child process."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import django

from .children import say
from .proc import PROC

PACKAGES = ("Django", "channels", "daphne", "uvicorn", "claude-agent-sdk")


@dataclass(frozen=True, slots=True)
class Machine:
    cores: int
    cpu: str
    memory_gb: float
    load_before: float
    """Above about 0.5 somebody else was at work, and the numbers are too high."""
    system: str
    python: str
    cli: str
    jailed: bool
    packages: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def describe() -> Machine:
    from agents.execution.confinement import cli_version, probe_jail

    return Machine(
        cores=len(os.sched_getaffinity(0)),
        cpu=_first_value("cpuinfo", "model name") or platform.machine(),
        memory_gb=round(int(_first_value("meminfo", "MemTotal").split()[0]) / 2**20, 1),
        load_before=round(os.getloadavg()[0], 2),
        system=f"{platform.system()} {platform.release().split('-')[0]}",
        python=sys.version.split()[0],
        cli=cli_version(),
        jailed=probe_jail().jailed,
        packages={name: version(name) for name in PACKAGES},
    )


def _first_value(file: str, name: str) -> str:
    for line in (PROC / file).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def main() -> None:
    django.setup()
    say(describe().as_json())


if __name__ == "__main__":
    main()
