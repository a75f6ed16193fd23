"""What MCP connections are lent: a jail for each program, guarded ways to addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import httpx2

from agents.conf import conf, data_dir
from agents.domain.mcp_discovery import Report
from agents.domain.mcp_servers import ConnectionSpec
from agents.errors import FolderMissingError, JailUnavailableError
from agents.gateway.network import BlockedAddressError, make_client
from agents.gateway.sentences import find_cause
from agents.mcp.connection import Connection, ConnectionFailedError
from agents.mcp.stdio import Program
from agents.workspaces.disk import private_folder, remove_tree

from .bubblewrap import TMP_IN_JAIL, JailSpec
from .confinement import JailStatus, probe_jail, write_launcher
from .environment import RUN_MARKER, SYSTEM_PATH
from .processes import kill_marked

# The jail starts a shell, which finds the command in the jail and becomes it.
_SHELL = Path("/bin/sh")
_BECOME = 'exec "$0" "$@"'


class ServerWays:
    """`agents.mcp.connection.Ways` with this machine's jail and network guard."""

    def __init__(self, jail: JailStatus) -> None:
        self._jail = jail

    async def program(self, spec: ConnectionSpec) -> Program:
        """Write the launcher of one start.

        Raises: JailUnavailableError, FolderMissingError.
        """
        if not self._jail.jailed and not _may_run_unjailed():
            raise JailUnavailableError(
                "MCP servers that are programs run in a jail only, and "
                + self._jail.reason
            )
        run_id = uuid4()
        launcher = await asyncio.to_thread(
            _write, spec, run_id, jailed=self._jail.jailed
        )

        async def end() -> None:
            await kill_marked(run_id)
            await asyncio.to_thread(remove_tree, launcher.parent)

        return Program((str(launcher), "-c", _BECOME, *spec.command), end)

    def http_client(self, *, may_be_private: bool) -> httpx2.AsyncClient:
        return make_client(
            allow_private=may_be_private, read_timeout_seconds=conf().mcp_call_seconds
        )

    def is_blocked(self, error: BaseException) -> bool:
        return bool(find_cause(error, BlockedAddressError))


def _may_run_unjailed() -> bool:
    return conf().allow_unjailed_execution and not conf().require_jail


def _write(spec: ConnectionSpec, run_id: UUID, *, jailed: bool) -> Path:
    home = private_folder(spec.home / "h")
    tmp = private_folder(spec.home / "t")
    jail = JailSpec(
        workspace=home,
        home=home,
        tmp=tmp,
        environment=_environment(spec, run_id, home, TMP_IN_JAIL if jailed else tmp),
        max_processes=conf().jail_max_processes,
        max_memory_bytes=conf().jail_max_memory_bytes,
        network=spec.has_network,
        extra_ro=tuple(_folders(spec)),
    )
    folder = private_folder(spec.home / f"l-{run_id.hex}")
    return write_launcher(jail, _SHELL, jailed=jailed, folder=folder)


def _environment(
    spec: ConnectionSpec, run_id: UUID, home: Path, tmp: Path
) -> dict[str, str]:
    """Nothing of the server's own, then what the person set; the marker last."""
    return {
        "HOME": str(home),
        "TMPDIR": str(tmp),
        "PATH": f"{home}/.local/bin:{SYSTEM_PATH}",
        "LANG": "C.UTF-8",
        **dict(spec.secrets),
        RUN_MARKER: str(run_id),
    }


def _folders(spec: ConnectionSpec) -> Iterator[Path]:
    """Checked again: what was a folder may be a link by now, or ours."""
    for folder in spec.folders:
        if folder != folder.resolve() or not folder.is_dir():
            raise FolderMissingError(f"The folder {folder} is not there any longer.")
        if folder.is_relative_to(data_dir()) or data_dir().is_relative_to(folder):
            raise FolderMissingError(f"The folder {folder} holds this site’s own data.")
        yield folder


async def _note_nothing(spec: ConnectionSpec, report: Report) -> None:
    """Whoever checks writes down what comes back."""


async def check_server(spec: ConnectionSpec) -> Report:
    """Connect once, ask for the tools, and leave; bounded in time, never raises."""
    connection = Connection(spec, ServerWays(probe_jail()), _note_nothing)
    try:
        return await connection.connected()
    except ConnectionFailedError as error:
        return error.report
    finally:
        await connection.close()
