"""A session's folders and launcher for tests, and shell probes run through them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents.execution.confinement import JailSpec, write_launcher
from agents.execution.environment import child_environment
from agents.execution.processes import find_marked
from agents.workspaces.folders import (
    create_workspace,
    delete_session_files,
    session_home,
    session_launcher_folder,
    session_tmp,
)

BASH = Path("/bin/bash")

# Under CI nothing may be skipped, so a machine without the jail fails there.
needs_jail = pytest.mark.skipif(
    shutil.which("bwrap") is None and not os.environ.get("CI"),
    reason="bubblewrap is not installed",
)
both_ways = pytest.mark.parametrize(
    "jailed",
    [pytest.param(True, marks=needs_jail, id="jailed"), pytest.param(False, id="bare")],
)


@dataclass
class Session:
    """What one session has on disk; `shell` is the agent's Bash."""

    session_id: UUID = field(default_factory=uuid4)
    user_id: UUID = field(default_factory=uuid4)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return create_workspace(self.user_id, self.session_id)

    def spec(self, *, jailed: bool = True) -> JailSpec:
        home, tmp = session_home(self.session_id), session_tmp(self.session_id)
        return JailSpec(
            workspace=self.workspace,
            home=home,
            tmp=tmp,
            max_processes=512,
            max_memory_bytes=8 * 1024**3,
            environment=child_environment(
                session_id=self.session_id,
                home=home,
                tmp=tmp,
                token="token-of-the-gateway",
                jailed=jailed,
            ),
        )

    def launcher(
        self, *, jailed: bool = True, cli: Path = BASH, **changes: Any
    ) -> Path:
        spec = replace(self.spec(jailed=jailed), **changes)
        folder = session_launcher_folder(self.session_id)
        return write_launcher(spec, cli, jailed=jailed, folder=folder)

    def shell(
        self,
        script: str,
        *,
        jailed: bool = True,
        inherited: dict[str, str] | None = None,
        **changes: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run the script as an agent would; `inherited` is the server's environment."""
        return subprocess.run(
            [self.launcher(jailed=jailed, **changes), "-c", script],
            cwd=self.workspace,
            env={**os.environ, **(inherited or {})},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def start(self, script: str, *, jailed: bool = True) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [self.launcher(jailed=jailed), "-c", script],
            cwd=self.workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def clean_up(self) -> None:
        # First, since what hides is only found below a living parent.
        for pid in find_marked(self.session_id):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.kill()
            process.communicate()
        eventually(lambda: find_marked(self.session_id) == [])
        delete_session_files(self.user_id, self.session_id)


def eventually(condition: Callable[[], bool], *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this never came true"
        time.sleep(0.01)
