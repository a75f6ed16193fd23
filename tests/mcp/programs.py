"""The test's own MCP server as a program that runs in the jail."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "servers" / "notes.py"
# Real paths: the jail shows no links to what it shows.
PYTHON = Path(sys.prefix).resolve()


def notes_command(how: str = "") -> list[str]:
    """`-P`: the folder of the script has names that shadow modules."""
    program = str(PYTHON / "bin" / "python")
    return [program, "-P", str(SCRIPT), *([how] if how else [])]


def notes_folders() -> list[str]:
    """What its jail has to show beside /usr: Python, its packages and the script."""
    places = {HERE, PYTHON, Path(sys.base_prefix).resolve()}
    return sorted(str(place) for place in places if not place.is_relative_to("/usr"))
