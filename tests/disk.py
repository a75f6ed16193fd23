"""What lies on the disk, searched from a process of its own.

Whoever opens and closes SQLite's file beside SQLite drops the locks that its process
holds (sqlite.org/howtocorrupt.html, 2.2). The next server that ends would then delete
the write-ahead log under the test run, and every later test meets an I/O error.
"""

from __future__ import annotations

import subprocess
from pathlib import Path


def files_holding(text: str, *places: Path) -> list[Path]:
    """Every file among or below the places that holds the text, as bytes."""
    found = subprocess.run(
        ["grep", "-rlaFZ", "--", text, *places],
        capture_output=True,
        text=True,
        check=False,
    )
    # 1 says none; 2 also comes for a file that went away while grep read.
    assert found.returncode in (0, 1) or "No such file" in found.stderr, found.stderr
    return [Path(name) for name in found.stdout.split("\0") if name]
