"""A small jail for git where its configuration is not ours.

An agent with access to a repository can write its configuration, and git runs what
stands there. In this jail git sees the system's programs and the folders it was given,
which is what the agent sees itself, and it has no network.

Where bubblewrap can't be used, agents run as the server's user anyway and there is no
boundary to keep; then the command runs as it is.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

PROBE_TIMEOUT_SECONDS = 10
_ROOT_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


def confine(
    command: Sequence[str], writable: Sequence[Path], readable: Sequence[Path] = ()
) -> list[str]:
    """Put the jail before a command; the folders are shown at their own paths."""
    bwrap = _usable(shutil.which("bwrap"))
    if bwrap is None:
        return list(command)
    return [bwrap, *_arguments(writable, readable), "--", *command]


@functools.cache
def _usable(bwrap: str | None) -> str | None:
    if bwrap is None:
        return None
    probe = [bwrap, *_arguments((), ()), "--", "/bin/true"]
    try:
        done = subprocess.run(  # noqa: S603 - bubblewrap with our own arguments
            probe, capture_output=True, timeout=PROBE_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return bwrap if done.returncode == 0 else None


def _arguments(writable: Sequence[Path], readable: Sequence[Path]) -> Iterator[str]:
    yield from ("--unshare-all", "--die-with-parent", "--new-session")
    yield from ("--cap-drop", "ALL", "--ro-bind", "/usr", "/usr")
    for name in _ROOT_FOLDERS:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")  # noqa: S108 - in the jail
    yield from _binds(writable, readable)


def _binds(writable: Sequence[Path], readable: Sequence[Path]) -> Iterator[str]:
    binds = [(path, "--bind") for path in writable]
    binds += [(path, "--ro-bind") for path in readable if path not in writable]
    # What lies within another one comes after it, or it would be covered.
    for path, option in sorted(binds, key=lambda bind: len(bind[0].parts)):
        yield from (option, str(path), str(path))
