"""`manage.py serve`: the whole application in one process."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import autoreload

from agents.conf import cli_homes_dir, data_dir, workspaces_dir
from agents.domain.accounts import issue_setup_token
from agents.domain.runs import reconcile_on_startup
from agents.management.server import AddressInUseError, serve_forever


class Command(BaseCommand):
    help = "Run OpenSwarm: web pages, live sockets and agents in one process."
    requires_system_checks = "__all__"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=_port, default=8000, help="port (0: any)")
        parser.add_argument(
            "--reload",
            action="store_true",
            help="for development: restart when the code changes",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["reload"]:
            # The outer process only watches; the inner one takes the lock.
            autoreload.run_with_reloader(self._serve, **options)
            return
        self._serve(**options)

    def _serve(self, **options: Any) -> None:
        lock = self._prepare()
        try:
            serve_forever(
                options["host"],
                options["port"],
                on_listening=self._announce,
                is_reloading=options["reload"],
            )
        except AddressInUseError as error:
            self.stderr.write(str(error))
            sys.stderr.flush()
            os._exit(1) if options["reload"] else sys.exit(1)
        finally:
            lock.close()

    def _prepare(self) -> IO[str]:
        """Folders, lock, tables, static files, and what a dead server left."""
        make_folders()
        lock = take_lock(data_dir() / "serve.lock")
        call_command("migrate", interactive=False, verbosity=0)
        if not settings.DEBUG:
            call_command("collectstatic", interactive=False, verbosity=0)
        settled = reconcile_on_startup()
        if settled:
            self.stdout.write(f"Settled {settled} run(s) of the last server.")
        return lock

    def _announce(self, host: str, port: int) -> None:
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104  shown
        address = settings.PUBLIC_URL or f"http://{shown}:{port}"
        self.stdout.write(f"OpenSwarm is at {address}/")
        token = issue_setup_token()
        if token is not None:
            self.stdout.write(
                "Nobody has an account yet. Make yours, the owner's, here (once):\n"
                f"  {address}/setup/{token}/"
            )
        self.stdout.flush()


def _port(value: str) -> int:
    port = int(value)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return port


def make_folders() -> None:
    """Raises: CommandError with a sentence when the data folder can't be written."""
    try:
        for folder in (data_dir(), workspaces_dir(), cli_homes_dir()):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
    except OSError as error:
        raise CommandError(
            f"The data folder {data_dir()} can't be written: {error.strerror}."
        ) from error


def take_lock(path: Path) -> IO[str]:
    """Hold the data folder for this server alone.

    Raises: CommandError when another server works on the same data.
    """
    lock = path.open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip() or "unknown"
        lock.close()
        raise CommandError(
            f"Another OpenSwarm server (process {owner}) already works on the data in"
            f" {path.parent}. Stop it, or set OPENSWARM_DATA_DIR to another folder."
        ) from None
    lock.seek(0)
    lock.truncate()
    lock.write(str(os.getpid()))
    lock.flush()
    return lock
