"""Running git on folders that an agent can write, without git running the agent.

Nothing is taken from the machine's or a person's configuration, and whatever could
start a program is switched off: hooks, fsmonitor, filters, external diffs, transports,
signing. A call has a deadline, ends with its whole process group, and its output is
bounded.

A repository of ours (`snapshots.py`) has no configuration but our own. A repository of
a person (`worktrees.py`) has one that agents may have written, so git is run there in
a jail of its own besides (`confined.py`).

Synchronous, like the domain functions that call it: a view restores files as well as
the engine. Never call it from an event loop, and never inside a transaction.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import IO

from agents.errors import WorkspaceError

from .confined import confine

MAX_OUTPUT_BYTES = 64 * 1024**2
ERROR_CHARACTERS = 300
# A reader that has enough ends git by SIGPIPE, seen directly or through the jail.
_LEFT_EARLY = (-signal.SIGPIPE, 128 + signal.SIGPIPE)

# Of the highest precedence, so no repository can switch these on again.
CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.sshCommand": "/bin/false",
    "core.alternateRefsCommand": "/bin/false",
    "core.quotePath": "false",
    "core.symlinks": "true",
    "credential.helper": "",
    "commit.gpgSign": "false",
    "diff.renameLimit": "1000",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "gc.autoDetach": "false",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "user.name": "OpenSwarm",
    "user.email": "agent@openswarm.invalid",
}
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    # A partial clone would fetch what is missing, by a command of its configuration.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_EDITOR": "/bin/false",
    "GIT_PAGER": "cat",
}


@dataclass(frozen=True, slots=True)
class Deadline:
    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        """Raises: WorkspaceError when nothing is left."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise WorkspaceError("The folder took too long to read.")
        return left


@dataclass(frozen=True, slots=True)
class Git:
    """One repository and how git is started on it."""

    git_dir: Path
    deadline: Deadline
    work_tree: Path | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    writable: tuple[Path, ...] | None = None
    """What a jailed git may write; None: not jailed, in a repository of ours."""
    readable: tuple[Path, ...] = ()

    def run(
        self,
        *arguments: str,
        data: bytes = b"",
        accepted: tuple[int, ...] = (0,),
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        truncated: bool = False,
    ) -> bytes:
        """Return what git prints, with `truncated` only the beginning of it.

        Raises: WorkspaceError when it fails, takes too long or prints too much.
        """
        with self.stream(*arguments, data=data, accepted=accepted) as output:
            printed = output.read(max_output_bytes + 1)
            if len(printed) > max_output_bytes and not truncated:
                raise WorkspaceError("The folder is too large for this.")
        return printed[:max_output_bytes]

    @contextmanager
    def stream(
        self, *arguments: str, data: bytes = b"", accepted: tuple[int, ...] = (0,)
    ) -> Iterator[IO[bytes]]:
        """Let the caller read what git prints, as far as it likes.

        Raises: WorkspaceError, also when git failed in the end.
        """
        with tempfile.TemporaryFile() as given:
            given.write(data)
            given.seek(0)
            accepted = (*accepted, *_LEFT_EARLY)
            with self._process(
                arguments, stdin=given, stdout=subprocess.PIPE, accepted=accepted
            ) as process:
                assert process.stdout is not None, "piped"
                yield process.stdout

    def feed(self, *arguments: str, chunks: Iterable[bytes]) -> None:
        """Write `chunks` to a git that prints nothing.

        Raises: WorkspaceError, and whatever making the chunks raises.
        """
        with self._process(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        ) as process:
            assert process.stdin is not None, "piped"
            with suppress(BrokenPipeError):  # it died; what it said is raised below
                for chunk in chunks:
                    process.stdin.write(chunk)
                process.stdin.flush()

    @contextmanager
    def _process(
        self,
        arguments: tuple[str, ...],
        *,
        stdin: IO[bytes] | int,
        stdout: int,
        accepted: tuple[int, ...] = (0,),
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run git beside the body, which may leave its output unread."""
        with tempfile.TemporaryFile() as errors:
            left = self.deadline.left()
            process = self._start(arguments, stdin, stdout, errors)
            timer = Timer(left, _kill, [process])
            timer.daemon = True
            timer.start()
            try:
                yield process
                _close_pipes(process)
                process.wait()
            finally:
                timer.cancel()
                _kill(process)
                _close_pipes(process)
            if process.returncode not in accepted:
                self.deadline.left()
                raise WorkspaceError(_sentence(arguments[0], errors))

    def _start(
        self,
        arguments: tuple[str, ...],
        stdin: IO[bytes] | int,
        stdout: int,
        stderr: IO[bytes],
    ) -> subprocess.Popen[bytes]:
        command = ["git", *arguments]
        if self.writable is not None:
            command = confine(command, self.writable, self.readable)
        try:
            return subprocess.Popen(  # noqa: S603 - git, its arguments are ours
                command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=self.git_dir,
                env=self._environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise WorkspaceError(f"Git can't be started: {error.strerror}.") from error

    def _environment(self) -> dict[str, str]:
        """Settings travel in variables: a `-c` can't carry a name that holds "="."""
        settings = {**self.config, **CONFIG}
        numbered = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, value) in enumerate(settings.items()):
            numbered[f"GIT_CONFIG_KEY_{number}"] = key
            numbered[f"GIT_CONFIG_VALUE_{number}"] = value
        places = {"GIT_DIR": str(self.git_dir)}
        if self.work_tree is not None:
            places["GIT_WORK_TREE"] = str(self.work_tree)
        return {**ENVIRONMENT, **numbered, **places, **self.environment}


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):  # what was buffered for a dead git
                pipe.close()


def _sentence(command: str, errors: IO[bytes]) -> str:
    errors.seek(0)
    said = errors.read(64 * ERROR_CHARACTERS).decode(errors="replace").strip()
    last = said.splitlines()[-1] if said else "it ended without a word"
    return f"Git ({command}) failed: {last[:ERROR_CHARACTERS]}"
