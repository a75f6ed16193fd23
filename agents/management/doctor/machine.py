"""What the machine offers: software, user, disk, jail."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from importlib import metadata

from agents.conf import conf, data_dir
from agents.errors import CliMissingError
from agents.execution.confinement import (
    cli_version,
    expected_cli_version,
    probe_jail,
)

from .findings import Finding, failed, ok, warning

OLDEST_PYTHON = (3, 11)
LOW_DISK_BYTES = 2 * 1024**3
NO_DISK_BYTES = 200 * 1024**2


def check_software() -> Finding:
    versions = ", ".join(
        f"{name} {metadata.version(name)}"
        for name in ("django", "channels", "claude-agent-sdk")
    )
    text = f"Python {platform.python_version()}, {versions}"
    if sys.version_info < OLDEST_PYTHON:
        return failed("Software", f"{text}; Python 3.11 or newer is needed.")
    return ok("Software", text)


def check_cli() -> Finding:
    """The SDK speaks a protocol without versions; only its own CLI surely fits."""
    try:
        version = cli_version()
    except CliMissingError as error:
        return failed("CLI", error.user_message)
    if version != expected_cli_version():
        return failed(
            "CLI",
            f"Claude Code {version} is installed, but the SDK comes with"
            f" {expected_cli_version()}. Install the requirements again.",
        )
    return ok("CLI", f"Claude Code {version}, the one that the SDK comes with")


def check_user() -> Finding:
    name = f"user {os.geteuid()}"
    if os.geteuid() == 0:
        return warning(
            "User",
            "the server runs as root: the jail's limit on processes does not count,"
            " and what leaves the jail may do anything. Use a user of its own.",
        )
    return ok("User", name)


def check_disk() -> Finding:
    try:
        free = shutil.disk_usage(data_dir()).free
    except OSError as error:
        return failed("Disk", f"{data_dir()} can't be looked at: {error.strerror}")
    text = f"{free / 1024**3:.1f} GiB free for {data_dir()}"
    if free < NO_DISK_BYTES:
        return failed("Disk", f"{text}; agents can't work like this.")
    if free < LOW_DISK_BYTES:
        return warning("Disk", f"{text}; that is not much for agents' workspaces.")
    return ok("Disk", text)


def check_jail() -> Finding:
    jail = probe_jail()
    if jail.jailed:
        return ok("Jail", "agents run in bubblewrap")
    if conf().require_jail:
        return failed("Jail", f"it is required, but {jail.reason}")
    return warning(
        "Jail",
        f"{jail.reason.rstrip('.')}. Agents are not jailed: a command that somebody"
        " approves runs with the server's rights.",
    )
