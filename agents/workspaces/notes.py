"""The workspace's own notes for agents, CLAUDE.md, read by us and never by the CLI.

An agent writes in that folder, so what it put there is read with suspicion: only a
regular file that lies within the folder, also by links, and only its beginning.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

NOTES_NAME = "CLAUDE.md"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK opening a pipe would wait for its writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_notes(folder: Path, *, max_bytes: int) -> str:
    """The notes, cut after `max_bytes`; empty where there are none to be read."""
    try:
        root = folder.resolve(strict=True)
        inside = (root / NOTES_NAME).resolve(strict=True).relative_to(root)
        return _read(root, inside, max_bytes)
    except (OSError, ValueError, RuntimeError):
        return ""  # none, one that leads elsewhere, or links in a circle


def _read(root: Path, inside: Path, max_bytes: int) -> str:
    """Each step from the root on without links: none was put there meanwhile."""
    steps = inside.parts
    if not steps:
        return ""
    at = os.open(root, _FOLDER)
    try:
        for name in steps[:-1]:
            below = os.open(name, _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        file = os.open(steps[-1], _FILE, dir_fd=at)
    finally:
        os.close(at)
    with os.fdopen(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            return ""
        return stream.read(max_bytes).decode(errors="replace")
