"""Removes what deleted sessions left: processes, late transcripts, files.

A folder that is there, of a session that is not, is the whole to-do list: a crash or a
lost doorbell loses nothing, since the next look finds it. Its files go last.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from agents.conf import cli_homes_dir, conf, snapshots_dir, workspaces_dir
from agents.domain.lifecycle import (
    deleted_among,
    forget_conversations,
    forget_pages,
    without_row,
)
from agents.events.bus import engine_group, listen
from agents.tasks import spawn
from agents.workspaces.folders import delete_session_files

from .client_pool import ClientPool
from .database import in_database, own_database_thread
from .processes import find_marked, kill_marked

logger = logging.getLogger(__name__)

# A launch makes the folder before its row is committed.
ORPHANED_AFTER_SECONDS = 3600.0


NOBODY = UUID(int=0)


@dataclass(slots=True)
class Folders:
    """What is there of a session."""

    owner_ids: set[UUID] = field(default_factory=set)
    changed_at: float = 0.0


class Cleaner:
    """One task of the engine. Sessions whose processes are still ending come later."""

    def __init__(self, pool: ClientPool) -> None:
        self._pool = pool
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = spawn(self._run(), name="cleaner")

    async def stop(self) -> None:
        self._stopping.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        async with own_database_thread(), listen(engine_group()) as inbox:
            while not self._stopping.is_set():
                try:
                    is_done = await self.clean()
                except Exception:
                    logger.exception("cleaning up failed")
                    is_done = True
                seconds = conf().cleaning_seconds
                await inbox.wait(seconds if is_done else min(seconds, 1.0))

    async def clean(self) -> bool:
        """Look once. Returns: False when something has to wait for a process."""
        found = await asyncio.to_thread(folders_by_session)
        gone = await in_database(_gone, found) if found else {}
        results = [
            await self._remove(session_id, found[session_id], conversations)
            for session_id, conversations in gone.items()
        ]
        if gone:
            await in_database(forget_pages)
        return all(results)

    async def _remove(
        self, session_id: UUID, folders: Folders, conversations: list[str]
    ) -> bool:
        await self._pool.close_session(session_id)
        if self._pool.is_busy(session_id):
            return False  # its turn is ending: it has lost its lease
        await kill_marked(session_id)
        if await asyncio.to_thread(find_marked, session_id):
            return False
        await in_database(forget_conversations, session_id, conversations)
        try:
            for owner_id in folders.owner_ids or {NOBODY}:
                await asyncio.to_thread(delete_session_files, owner_id, session_id)
        except OSError:
            logger.exception("session %s: files are left; tried again", session_id)
        return True


def folders_by_session() -> dict[UUID, Folders]:
    """Every session that has a folder somewhere below the data folder."""
    found: dict[UUID, Folders] = {}
    for owner in _subfolders(workspaces_dir()):
        for folder in _subfolders(owner):
            _note(found, folder, owner)
    for root in (cli_homes_dir(), snapshots_dir()):
        for folder in _subfolders(root):
            _note(found, folder)
    return found


def _subfolders(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _note(found: dict[UUID, Folders], folder: Path, owner: Path | None = None) -> None:
    session_id = _uuid(folder.name)
    if session_id is None:
        return
    entry = found.setdefault(session_id, Folders())
    owner_id = _uuid(owner.name) if owner is not None else None
    if owner_id is not None:
        entry.owner_ids.add(owner_id)
    try:
        changed_at = folder.lstat().st_mtime
    except OSError:  # it has just gone
        return
    entry.changed_at = max(entry.changed_at, changed_at)


def _uuid(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None


def _gone(found: dict[UUID, Folders]) -> dict[UUID, list[str]]:
    """The sessions to clean up after, each with its conversations.

    Those that somebody deleted; and old ones that went in another way, such as with
    their owner's account.
    """
    missing = without_row(set(found))
    if not missing:
        return {}
    before = time.time() - ORPHANED_AFTER_SECONDS
    orphans: dict[UUID, list[str]] = {
        each: [] for each in missing if found[each].changed_at < before
    }
    return orphans | deleted_among(missing)
