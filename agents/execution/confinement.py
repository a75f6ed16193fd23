"""The launcher that starts a CLI in the jail, or with the fallback without it.

The SDK is pointed at a small script, written per session, which puts one bubblewrap
jail around the whole CLI. What a process may see is a `JailSpec`; how bubblewrap is
told so stands in `bubblewrap.py`, and who gets which folder or network is decided by
the callers.

Limits of the jail: at most so many processes (the kernel doesn't count those of root,
so a server shouldn't run as root), and so much memory *per process*, as RLIMIT_DATA:
the CLI reserves 3.3 GiB of its 8 and uses 0.2, makes do with 1 GiB and doesn't start
with 512 MiB (measured). A bound for a session as a whole takes a cgroup around the
server. With `network` the agent is on the host's network, loopback included.

Both ways a launched CLI ends with the server, but to the kernel "the server" is the
*thread* that started it, so clients must be started from a thread that lives on.
Without the jail only the CLI gets a SIGTERM then: its Bash children end with it, a
daemon that detached itself doesn't (`processes.py` finds it while it is marked).
"""

from __future__ import annotations

import functools
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import claude_agent_sdk
from claude_agent_sdk._cli_version import __cli_version__

from agents.conf import conf
from agents.errors import CliMissingError

from .bubblewrap import HOSTS, JailSpec, bwrap_arguments, clear_mount_points
from .environment import RUN_MARKER, SYSTEM_PATH

__all__ = [
    "JailSpec",
    "JailStatus",
    "bundled_cli",
    "cli_version",
    "expected_cli_version",
    "probe_jail",
    "reset_probe",
    "write_launcher",
    "write_system_prompt",
]

PROBE_TIMEOUT_SECONDS = 10
# What the SDK, outside the jail, copies from the config folder when it resumes.
COPIED_BY_THE_SDK = (
    ".claude.json",
    ".credentials.json",
    "cowork_settings.json",
    "settings.json",
)


@dataclass(frozen=True, slots=True)
class JailStatus:
    jailed: bool
    reason: str = ""  # a sentence for people when not jailed


def bundled_cli() -> Path:
    """Return the Claude Code CLI that comes with the claude-agent-sdk wheel.

    Raises:
        CliMissingError: the wheel has none, as with a build for another platform.
    """
    cli = Path(claude_agent_sdk.__file__).resolve().parent / "_bundled" / "claude"
    if not cli.is_file():
        raise CliMissingError(
            "The Claude Code CLI is missing from the installed claude-agent-sdk. "
            "Install the requirements again (make run does), then restart the server."
        )
    return cli


@functools.cache
def cli_version() -> str:
    """Return what the CLI itself says, as in "2.1.332".

    Raises:
        CliMissingError: it is missing or doesn't start.
    """
    cli = bundled_cli()
    with tempfile.TemporaryDirectory(prefix="os-version-") as home:
        environment = {"PATH": SYSTEM_PATH, "HOME": home, "CLAUDE_CONFIG_DIR": home}
        try:
            answer = _run(cli, "--version", environment=environment)
            answer.check_returncode()
        except (OSError, subprocess.SubprocessError) as error:
            raise CliMissingError(f"The Claude Code CLI fails: {error}") from error
    return answer.stdout.split()[0]


def expected_cli_version() -> str:
    """Return the version of the CLI that the installed SDK was released with."""
    return __cli_version__


def probe_jail() -> JailStatus:
    """Say whether agents are jailed on this machine, by building a jail once."""
    if conf().disable_jail:
        return JailStatus(False, "The jail is switched off in this site's settings.")
    return _probe(shutil.which("bwrap"))


def reset_probe() -> None:
    """Forget the answer of `probe_jail`, which is otherwise kept for good."""
    _probe.cache_clear()


def write_launcher(spec: JailSpec, cli: Path, *, jailed: bool, folder: Path) -> Path:
    """Write the executable for `ClaudeAgentOptions.cli_path` and return its path.

    `folder` holds it with its secrets, so no agent may see it. No process of the
    session may be alive, since the links that it left are removed here.

    Raises:
        ValueError: the spec has a link or relative path, or would show `folder`.
    """
    _check(spec, folder)
    _unlink_traps(spec)
    cli = cli.resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    if jailed:
        clear_mount_points(spec, cli.parent)
        hosts = _write(folder / "hosts", HOSTS, mode=0o644)
        arguments = bwrap_arguments(spec, cli.parent, hosts)
        _write(folder / "jail.args", "".join(f"{word}\0" for word in arguments))
    else:
        _write(folder / "unjailed.sh", _unjailed_script(spec, cli))
    script = _launcher_script(spec, cli, jailed=jailed, folder=folder)
    return _write_program(folder / "launcher", script)


def write_system_prompt(text: str, folder: Path) -> Path:
    """Write what the CLI is to be told into its launcher's folder; return the path.

    In a file, since one argument of a program ends at 128 KiB, and a text that begins
    with a dash would be an option.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _write(folder / "system-prompt", text)


def _check(spec: JailSpec, folder: Path) -> None:
    for path in (*spec.writable, *spec.extra_ro, folder):
        if path != path.resolve():
            raise ValueError(f"{path} is not a real path")
    if any(folder.is_relative_to(path) for path in (*spec.writable, *spec.extra_ro)):
        raise ValueError(f"the launcher in {folder} would be shown to the agent")


def _unlink_traps(spec: JailSpec) -> None:
    """Remove links that an agent left where the SDK reads in its name.

    The SDK follows them, with the server's rights, and puts the content into the
    config folder of the next process: an agent would read any file of the server.
    """
    config = spec.environment.get("CLAUDE_CONFIG_DIR")
    if config is None:
        return
    for path in (Path(config), *(Path(config, name) for name in COPIED_BY_THE_SDK)):
        if path.is_symlink():
            path.unlink()


def _launcher_script(spec: JailSpec, cli: Path, *, jailed: bool, folder: Path) -> str:
    values = {
        "jailed": "yes" if jailed else "no",
        "folder": folder,
        "cli": cli,
        "bwrap": shutil.which("bwrap") or "bwrap",
        "marker": f"{RUN_MARKER}={spec.environment.get(RUN_MARKER, '')}",
        # The name that the SDK's session_resume.py gives; a test asks it.
        "resume_prefix": f"{tempfile.gettempdir()}/claude-resume-",
        "max_processes": spec.max_processes,
        "max_memory_bytes": spec.max_memory_bytes,
    }
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in values.items()]
    body = Path(__file__).with_name("launcher.sh").read_text()
    return "\n".join(["#!/bin/sh", *lines, body])


def _unjailed_script(spec: JailSpec, cli: Path) -> str:
    """What the launcher continues with in an empty environment.

    No limit on processes: outside a user namespace it counts all of the user's.
    """
    setpriv = shutil.which("setpriv")
    die_with_parent = f"{setpriv} --pdeathsig TERM -- " if setpriv else ""
    return "\n".join(
        [
            *_exports(spec.environment),
            'if [ -n "${resume_config_dir:-}" ]; then',
            "    export CLAUDE_CONFIG_DIR=$resume_config_dir",
            "    unset resume_config_dir",
            "fi",
            "ulimit -c 0",
            f"ulimit -d {spec.max_memory_bytes // 1024}",
            f'exec {die_with_parent}{shlex.quote(str(cli))} "$@"',
            "",
        ]
    )


def _exports(environment: Mapping[str, str]) -> list[str]:
    return [f"export {key}={shlex.quote(value)}" for key, value in environment.items()]


def _write_program(path: Path, text: str) -> Path:
    """Have another process write it.

    What this one has open for writing, a child that some thread just forks has open as
    well, and what any process has open for writing the kernel doesn't run (ETXTBSY).
    """
    subprocess.run(  # noqa: S603 - nothing in it comes from outside
        ["/usr/bin/install", "--mode=700", "/dev/stdin", path],
        input=text,
        text=True,
        check=True,
    )
    return path


def _write(path: Path, text: str, *, mode: int = 0o600) -> Path:
    path.unlink(missing_ok=True)  # a running script mustn't change under its shell
    path.touch(mode=mode, exist_ok=False)
    path.write_text(text)
    return path


@functools.cache
def _probe(bwrap: str | None) -> JailStatus:
    """Start /bin/true through a launcher; `bwrap --version` succeeds anywhere."""
    if bwrap is None:
        return JailStatus(
            False, "bubblewrap is not installed (on Debian: apt install bubblewrap)."
        )
    with tempfile.TemporaryDirectory(prefix="os-jail-") as temporary:
        launcher = _probe_launcher(Path(temporary).resolve())
        try:
            done = _run(launcher)
        except (OSError, subprocess.SubprocessError) as error:
            return JailStatus(False, f"bubblewrap can't be started here: {error}.")
    if done.returncode == 0:
        return JailStatus(True)
    said = done.stderr.strip().splitlines()
    detail = said[-1] if said else f"exit status {done.returncode}"
    return JailStatus(False, f"bubblewrap can't build a jail here: {detail}")


def _probe_launcher(base: Path) -> Path:
    for name in ("workspace", "home", "tmp"):
        (base / name).mkdir(mode=0o700)
    spec = JailSpec(
        workspace=base / "workspace",
        home=base / "home",
        tmp=base / "tmp",
        environment={"PATH": SYSTEM_PATH},
        max_processes=conf().jail_max_processes,
        max_memory_bytes=conf().jail_max_memory_bytes,
    )
    return write_launcher(spec, Path("/bin/true"), jailed=True, folder=base / "l")


def _run(
    program: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own launcher or the bundled CLI
        [program, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PROBE_TIMEOUT_SECONDS,
        check=False,
    )
