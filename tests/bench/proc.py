"""What Linux says about processes: CPU time and memory, of one or of a whole tree."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Memory:
    """Kilobytes. PSS divides what processes share among them; RSS counts it whole."""

    rss_kb: int
    pss_kb: int


def memory(pid: int) -> Memory:
    found = {}
    for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("Rss", "Pss"):
            found[name] = int(rest.split()[0])
    return Memory(rss_kb=found["Rss"], pss_kb=found["Pss"])


@dataclass(slots=True)
class CpuMeter:
    """Share of one core that a process and its descendants took since `start`."""

    pid: int
    _at: float = 0.0
    _own: float = 0.0
    _below: float = 0.0

    def start(self) -> Self:
        self._at = time.monotonic()
        self._own, self._below = cpu_seconds(self.pid)
        return self

    def percent(self) -> tuple[float, float]:
        """Returns: the process itself, and all below it, in percent of one core."""
        elapsed = time.monotonic() - self._at
        own, below = cpu_seconds(self.pid)
        return (
            100 * (own - self._own) / elapsed,
            100 * (below - self._below) / elapsed,
        )


def cpu_seconds(pid: int) -> tuple[float, float]:
    """CPU time of a process, and of those of its descendants that live now."""
    stats = _stats()
    below = {pid}
    grown = True
    while grown:
        more = {child for child, (parent, _) in stats.items() if parent in below}
        grown = not more <= below
        below |= more
    own = stats[pid][1] if pid in stats else 0.0
    return own, sum(stats[each][1] for each in below if each in stats) - own


def _stats() -> dict[int, tuple[int, float]]:
    """Pid -> (parent, CPU seconds)."""
    found = {}
    for folder in PROC.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            text = (folder / "stat").read_text()
        except OSError:  # gone since the listing began
            continue
        # The name in brackets may hold anything, brackets and blanks included.
        fields = text.rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        found[int(folder.name)] = (int(fields[1]), ticks / TICKS_PER_SECOND)
    return found
