"""A PostgreSQL of the tests' own: a temporary cluster that ends with the process.

Debian's binaries, run as an unprivileged user (the server refuses to run as root), on a
Unix socket in a folder of its own: no port, no password, nothing of the machine's own
clusters.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

_USERS = ("postgres", "nobody")
_START_SECONDS = 30
_PR_SET_PDEATHSIG = 1
# What is lost with the machine's power is of no use to anybody.
_CARELESS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class Cluster:
    """A running server; `url(database)` is what OPENSWARM_DATABASE_URL takes."""

    def __init__(self) -> None:
        self._programs = _find_programs()
        self._user = _unprivileged_user()
        self._folder = Path(tempfile.mkdtemp(prefix="os-pg-"))
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        self._initialise()
        self._server = self._run_server()
        self._wait()

    def stop(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)  # at once; nothing is kept
            self._server.wait()
            self._server = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://tests@{quote(str(self._folder), safe='')}/{database}"

    def _initialise(self) -> None:
        made = subprocess.run(
            [
                *(self._program("initdb"), "-D", str(self._folder / "data")),
                *("-U", "tests", "-A", "trust", "--no-sync", "--no-instructions"),
                *("--encoding=UTF8", "--locale=C.UTF-8"),
            ],
            user=self._user,
            cwd=self._folder,
            capture_output=True,
            text=True,
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr}")

    def _run_server(self) -> subprocess.Popen[bytes]:
        options = [f"unix_socket_directories={self._folder}", "listen_addresses="]
        settings = [part for each in (*options, *_CARELESS) for part in ("-c", each)]
        with (self._folder / "log").open("wb") as log:
            return subprocess.Popen(
                [self._program("postgres"), "-D", self._folder / "data", *settings],
                user=self._user,
                cwd=self._folder,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,
            )

    def _wait(self) -> None:
        assert self._server is not None
        deadline = time.monotonic() + _START_SECONDS
        ready = [self._program("pg_isready"), "-q", "-h", str(self._folder)]
        while subprocess.run(ready).returncode:
            if self._server.poll() is not None or time.monotonic() > deadline:
                log = (self._folder / "log").read_text()
                self.stop()
                raise RuntimeError(f"PostgreSQL did not start:\n{log}")
            time.sleep(0.02)

    def _program(self, name: str) -> str:
        return str(self._programs / name)


def start_cluster() -> Cluster:
    """A cluster for as long as this process lives."""
    cluster = Cluster()
    atexit.register(cluster.stop)
    cluster.start()
    return cluster


def _find_programs() -> Path:
    """Debian keeps the server's programs out of PATH, one folder a version."""
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    program = packaged[-1] if packaged else shutil.which("initdb")
    if program is None:
        raise RuntimeError("PostgreSQL is missing: apt-get install postgresql")
    return Path(program).resolve().parent


def _unprivileged_user() -> str | None:
    """Whom the server runs as; None: as ourselves, who aren't root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in _USERS if name in known)


def _end_with_parent() -> None:
    """Even a killed test run leaves no server behind. After the change of user."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
