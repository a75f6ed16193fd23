"""The data folder at start-up: made private, and held by one server alone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core.management.base import CommandError

from agents.conf import cli_homes_dir, data_dir, workspaces_dir

LOCK_NAME = "serve.lock"


def make_folders() -> None:
    """Make the data folder and its parts, for this user only.

    Raises: CommandError with a sentence when it can't be written.
    """
    try:
        for folder in (data_dir(), workspaces_dir(), cli_homes_dir()):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
        database = make_database_file()
        if database is not None:
            database.chmod(0o600)
    except OSError as error:
        raise CommandError(
            f"The data folder {data_dir()} can't be written: {error.strerror}. Give it"
            " to this user, or set OPENSWARM_DATA_DIR to another folder."
        ) from error


def make_database_file() -> Path | None:
    """Make SQLite's file for this user only, unless it is there.

    SQLite itself would let everybody read it, and gives its mode to -wal and -shm.

    Returns: the file, or None for another database.
    """
    database = settings.DATABASES["default"]
    if database["ENGINE"] != "django.db.backends.sqlite3":
        return None
    path = Path(database["NAME"])
    path.touch(mode=0o600)
    return path


def take_lock() -> IO[str]:
    """Hold the data folder for this server alone, until the file is closed.

    Raises: CommandError when another server works on the same data.
    """
    path = data_dir() / LOCK_NAME
    lock = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = lock.read().strip() or "unknown"
        lock.close()
        raise CommandError(
            f"Another OpenSwarm server (process {owner}) already works on the data in"
            f" {data_dir()}. Stop it, or set OPENSWARM_DATA_DIR to another folder."
        ) from None
    lock.seek(0)
    lock.truncate()
    lock.write(str(os.getpid()))
    lock.flush()
    return lock
