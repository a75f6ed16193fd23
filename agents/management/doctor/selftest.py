"""Carries out the live self-test in a process of its own.

On a data folder and a database made for it alone, and removed afterwards: nothing of
the site is touched, and a server that runs meanwhile has no part in it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

from django.conf import settings

from agents.conf import data_dir

from .findings import Finding, failed

SUBJECT = "Self-test"
SELFTEST_SECONDS = 240
OPTION = "--self-test"
FOLDER_PREFIX = "doctor-"
# The site's own, which the self-test must not come near.
NOT_INHERITED = (
    "OPENSWARM_DATABASE_URL",
    "OPENSWARM_REDIS_URL",
    "OPENSWARM_SECRET_KEY",
    "OPENSWARM_ENCRYPTION_KEYS",
)


def run_selftest() -> list[Finding]:
    folder = data_dir() / f"{FOLDER_PREFIX}{uuid4().hex[:6]}"
    try:
        folder.mkdir(mode=0o700)
        done = subprocess.run(  # noqa: S603  this very program
            [sys.executable, "manage.py", "doctor", OPTION],
            cwd=settings.BASE_DIR,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SELFTEST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return [failed(SUBJECT, f"it could not be carried out: {error}")]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _read(done)


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in set(os.environ) - set(NOT_INHERITED)}
    return {**kept, "OPENSWARM_DATA_DIR": str(folder), "OPENSWARM_LOG": "CRITICAL"}


def _read(done: subprocess.CompletedProcess[str]) -> list[Finding]:
    try:
        return [Finding(*values) for values in json.loads(done.stdout)]
    except (ValueError, TypeError):
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return [failed(SUBJECT, f"it could not be carried out: {said[-1]}")]
