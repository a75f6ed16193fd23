"""Finding and ending every process of a session, through /proc.

By the marker in their environment, not by stored ids: it also finds daemons that
left their process group. A process that cleared its environment is found below a
marked one, as everything in a jail is below its first process. Without the jail a
daemon that did both escapes.
"""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from .environment import RUN_MARKER

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    marked: bool


def find_marked(session_id: UUID) -> list[int]:
    """Return the ids of the session's live processes, as seen from the host."""
    processes = _snapshot(f"{RUN_MARKER}={session_id}".encode())
    found = {process.pid for process in processes if process.marked}
    while more := {p.pid for p in processes if p.parent in found} - found:
        found |= more
    return sorted(found - {os.getpid()})


async def kill_marked(session_id: UUID, *, timeout_seconds: float = 2) -> list[int]:
    """End all processes of the session at once and wait until they are gone.

    Returns: what is still alive after the timeout; normally nothing.
    """
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    while alive := await asyncio.to_thread(_kill_once, session_id):
        if asyncio.get_running_loop().time() > deadline:
            return alive
        await asyncio.sleep(0.01)
    return []


def _kill_once(session_id: UUID) -> list[int]:
    alive = find_marked(session_id)
    for pid in alive:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return alive


def _snapshot(marker: bytes) -> list[_Process]:
    folders = (folder for folder in PROC.iterdir() if folder.name.isdecimal())
    return [process for folder in folders if (process := _read(folder, marker))]


def _read(folder: Path, marker: bytes) -> _Process | None:
    """Read one process; None when it is a zombie, has gone, or is a kernel thread."""
    try:
        # "pid (name) state parent ...", and the name may hold spaces and brackets.
        state, parent, *_ = (folder / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    if state in b"ZX":
        return None
    try:
        marked = marker in (folder / "environ").read_bytes().split(b"\0")
    except OSError:  # another user's, or it has just gone
        marked = False
    return _Process(int(folder.name), int(parent), marked)
