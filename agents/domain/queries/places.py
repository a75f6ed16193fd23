"""What of a session's folder can be chosen for a message, for a list of checkboxes."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from agents.models import AgentSession

MAX_ENTRIES = 200
MAX_SCANNED = 5000
MAX_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Place:
    """A file, or a folder, whose path ends in a slash."""

    path: str
    size_bytes: int | None = None

    @property
    def is_folder(self) -> bool:
        return self.path.endswith("/")


@dataclass(frozen=True, slots=True)
class Places:
    entries: tuple[Place, ...]
    are_more: bool


def load_places(session: AgentSession) -> Places:
    """The upper levels of the folder; hidden names and links are left out.

    Only the names: whether one may be read is decided when it is chosen.
    """
    root = Path(session.cwd)
    found: list[Place] = []
    waiting = deque([(root, 1)])
    scanned = 0
    while waiting and len(found) < MAX_ENTRIES and scanned < MAX_SCANNED:
        folder, depth = waiting.popleft()
        for entry in _entries(folder):
            scanned += 1
            path = str(Path(entry.path).relative_to(root))
            if not entry.is_dir(follow_symlinks=False):
                found.append(Place(path, entry.stat(follow_symlinks=False).st_size))
                continue
            found.append(Place(f"{path}/"))
            if depth < MAX_DEPTH:
                waiting.append((Path(entry.path), depth + 1))
    are_more = len(found) > MAX_ENTRIES or bool(waiting)
    shown = sorted(found[:MAX_ENTRIES], key=lambda place: place.path)
    return Places(tuple(shown), are_more)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            shown = [e for e in entries if _is_shown(e)]
    except OSError:
        return []
    return sorted(shown, key=lambda entry: entry.name)[: MAX_ENTRIES + 1]


def _is_shown(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.is_symlink() or not entry.name.isprintable():
        return False
    return entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
