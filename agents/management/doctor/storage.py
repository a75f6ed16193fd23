"""Where things are kept: folder, secrets, database, channel layer, static files."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from uuid import uuid4

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from redis.exceptions import RedisError

from agents.conf import cli_homes_dir, data_dir, workspaces_dir
from agents.events.bus import layer
from agents.gateway.server import MAX_SOCKET_PATH_BYTES
from agents.management.data_folder import make_database_file

from .findings import Finding, failed, ok, warning

BELL_SECONDS = 5
SECRETS = ("secret.key", "encryption.key", "openswarm.sqlite3")


def check_data_folder() -> Finding:
    folder = data_dir()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"doctor")
    except OSError as error:
        return failed("Data folder", f"{folder} can't be written: {error.strerror}")
    socket = folder / "run" / f"{2**22}.sock"  # the largest process id
    if len(os.fsencode(socket)) > MAX_SOCKET_PATH_BYTES:
        return failed(
            "Data folder",
            f"the path {folder} is too long for the agents' socket. Set"
            " OPENSWARM_DATA_DIR to a shorter one.",
        )
    open_ones = _open_to_others([folder, workspaces_dir(), cli_homes_dir()])
    if open_ones:
        return failed(
            "Data folder",
            f"other users can look into {_listed(open_ones)}. Restart the server, or:"
            f" chmod 700 {_listed(open_ones, ' ')}",
        )
    return ok("Data folder", f"{folder} is writable and private")


def check_secrets() -> Finding:
    """Whoever reads these files can sign in as anyone, and use every stored key."""
    files = [data_dir() / name for name in SECRETS]
    open_ones = _open_to_others(files)
    if open_ones:
        paths = _listed(open_ones)
        return failed("Secrets", f"other users can read {paths}. Do: chmod 600 {paths}")
    there = [file.name for file in files if file.exists()]
    return ok("Secrets", f"{', '.join(there) or 'no file'}: for this user only")


def _open_to_others(paths: list[Path]) -> list[Path]:
    return [path for path in paths if path.exists() and path.stat().st_mode & 0o077]


def _listed(paths: list[Path], separator: str = ", ") -> str:
    return separator.join(str(path) for path in paths)


def check_database() -> Finding:
    """Make, fill and read a table of its own, and roll all of it back."""
    table = connection.ops.quote_name(f"openswarm_doctor_{uuid4().hex[:8]}")
    try:
        make_database_file()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {table} (number integer)")
            cursor.execute(f"INSERT INTO {table} VALUES (42)")  # noqa: S608  made above
            cursor.execute(f"SELECT number FROM {table}")  # noqa: S608  made above
            row = cursor.fetchone()
            transaction.set_rollback(True)
    except (DatabaseError, OSError) as error:
        return failed("Database", f"{connection.vendor}: {error}")
    if row != (42,):
        return failed("Database", f"wrote 42 and read {row}")
    return ok("Database", f"{connection.vendor}: wrote, read and rolled back")


def check_migrations() -> Finding:
    try:
        executor = MigrationExecutor(connection)
    except DatabaseError as error:
        return failed("Migrations", str(error))
    loader = executor.loader
    pending = executor.migration_plan(loader.graph.leaf_nodes())
    foreign = set(loader.applied_migrations) - set(loader.disk_migrations)
    if foreign:
        names = ", ".join(".".join(key) for key in sorted(foreign))
        return failed(
            "Migrations",
            f"the database was used by a newer OpenSwarm ({names} is not known here).",
        )
    if not loader.applied_migrations:
        return warning("Migrations", "no tables yet: the first start makes them")
    if pending:
        return failed(
            "Migrations",
            f"{len(pending)} to be applied: restart the server, which does it.",
        )
    return ok("Migrations", f"all {len(loader.applied_migrations)} are applied")


def check_channel_layer() -> Finding:
    name = type(layer()).__name__
    try:
        async_to_sync(_ring_and_listen)()
    except (OSError, RedisError) as error:
        said = str(error) or f"nothing within {BELL_SECONDS} s"
        return failed("Channel layer", f"{name} does not carry messages: {said}")
    return ok("Channel layer", f"{name}: a message to a group came back")


async def _ring_and_listen() -> None:
    """Past the bus, which bears a layer that is down, as the application must."""
    found, group = layer(), f"doctor.{uuid4().hex}"
    channel = await found.new_channel()
    await found.group_add(group, channel)
    await found.group_send(group, {"type": "doctor.bell"})
    await asyncio.wait_for(found.receive(channel), BELL_SECONDS)
    await found.group_discard(group, channel)


def check_static_files() -> Finding:
    if settings.DEBUG:
        return ok("Static files", "served from the source (debug)")
    try:
        url = staticfiles_storage.url("css/app.css")
    except ValueError:
        return warning("Static files", "not collected yet: each start does it")
    path = Path(settings.STATIC_ROOT) / url.removeprefix(settings.STATIC_URL)
    if not path.is_file():
        return failed("Static files", f"{path} is missing: restart the server.")
    return ok("Static files", "collected")
