"""`manage.py serve`: the whole application in one process."""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from agents.domain.accounts import issue_setup_token
from agents.domain.sessions import restore_all_sessions
from agents.domain.site_analytics import app_opened
from agents.execution.confinement import probe_jail
from agents.management.data_folder import make_folders, take_lock
from agents.management.reloading import run_with_reloader
from agents.management.server import Serving, ServingError, check_address
from openswarm import __version__

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


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
        self._host, self._port = options["host"], options["port"]
        self._serving: Serving | None = None
        if options["reload"]:
            # The outer process only watches; the inner one takes the lock.
            run_with_reloader(self._serve_in_thread, self._stop)
        self._serve()

    def _serve(self) -> None:
        try:
            check_address(self._host, self._port)
            make_folders()
            with take_lock():
                self._prepare()
                token = issue_setup_token()
                self._serving = Serving(
                    self._host, self._port, on_ready=partial(self._announce, token)
                )
                self._serving.run()
        except ServingError as error:
            raise CommandError(str(error)) from error

    def _serve_in_thread(self) -> None:
        """Only the main thread can end the process in the usual way."""
        try:
            self._serve()
        except CommandError as error:
            self.stderr.write(f"{error}")
            self.stderr.flush()
            os._exit(1)

    def _stop(self) -> None:
        if self._serving is not None:
            self._serving.stop()

    def _prepare(self) -> None:
        """Tables, static files, and what a dead server left."""
        call_command("migrate", interactive=False, verbosity=0)
        if not settings.DEBUG:
            call_command("collectstatic", interactive=False, verbosity=0)
        # The lock proves that nobody else works on a file; elsewhere leases expire.
        settled = restore_all_sessions() if connection.vendor == "sqlite" else 0
        if settled:
            self.stdout.write(f"Settled {settled} run(s) that the last server left.")
        app_opened(version=__version__)

    def _announce(self, setup_token: str | None, port: int) -> None:
        listening = f"http://{_shown(self._host)}:{port}"
        address = settings.PUBLIC_URL or listening
        at = f", listening on {listening}/" if settings.PUBLIC_URL else ""
        self.stdout.write(f"OpenSwarm is at {address}/{at}")
        for note in self._notes():
            self.stdout.write(note)
        if setup_token is not None:
            self.stdout.write(
                "Nobody has an account yet. Make yours, the owner's, here (once):\n"
                f"  {address}/setup/{setup_token}/"
            )
        self.stdout.flush()

    def _notes(self) -> list[str]:
        notes = []
        jail = probe_jail()
        if not jail.jailed:
            notes.append(f"Agents are not jailed: {jail.reason}")
        if self._host not in LOOPBACK and not settings.PUBLIC_URL:
            notes.append(
                "Other machines are refused until OPENSWARM_URL names the address"
                " people use: see docs/howto/deploy.md."
            )
        return notes


def _port(value: str) -> int:
    try:
        port = int(value)
    except ValueError:
        port = -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return port


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::", "[::]"):  # noqa: S104  only shown
        return "127.0.0.1"
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
