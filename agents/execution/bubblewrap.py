"""What the jail shows: the arguments of bubblewrap for one `JailSpec`.

Each mount is here for a reason, and what isn't mounted doesn't exist in the jail.
The threat is an agent that runs as the server's own user, perhaps as root: without
capabilities, but as the owner of every file that this user owns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .environment import GATEWAY_SOCKET_IN_JAIL, SYSTEM_PROMPT_IN_JAIL

TMP_IN_JAIL = Path("/tmp")  # noqa: S108 - where the jail shows the session's own folder
HOSTNAME = "agent"
HOSTS = f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n"

# What programs of /usr need in order to work. Not all of /etc/ssl or /etc/pki: a
# server that runs as root would show the private keys of the machine.
ETC = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "debian_version",
    "fonts",
    "group",
    "host.conf",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "protocols",
    "python3",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)
ETC_WITH_NETWORK = ("hosts", "resolv.conf", "gai.conf")
ROOT_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@dataclass(frozen=True, slots=True)
class JailSpec:
    """What one CLI process may see. All paths are real paths, without links."""

    workspace: Path
    home: Path  # HOME and CLAUDE_CONFIG_DIR live in it
    tmp: Path  # shown as /tmp
    environment: Mapping[str, str]
    max_processes: int
    max_memory_bytes: int  # of each process
    network: bool = False
    gateway_socket: Path | None = None  # shown as GATEWAY_SOCKET_IN_JAIL
    system_prompt: Path | None = None  # shown as SYSTEM_PROMPT_IN_JAIL
    extra_rw: tuple[Path, ...] = ()
    extra_ro: tuple[Path, ...] = ()

    @property
    def writable(self) -> tuple[Path, ...]:
        return (self.workspace, self.home, self.tmp, *self.extra_rw)


def bwrap_arguments(spec: JailSpec, cli_folder: Path, hosts: Path) -> Iterator[str]:
    """Yield all arguments but those that the launcher adds (`launcher.sh`)."""
    yield from ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--hostname", HOSTNAME)
    if not spec.network:
        yield "--unshare-net"
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
    yield from _system_mounts()
    yield from _etc_mounts(None if spec.network else hosts)
    yield from _session_mounts(spec)
    # Last, so that a writable folder around the CLI can't be used to replace it.
    yield from ("--ro-bind", str(cli_folder), str(cli_folder))
    yield from ("--chdir", str(spec.workspace))
    for name, value in spec.environment.items():
        yield from ("--setenv", name, value)


def clear_mount_points(spec: JailSpec, cli_folder: Path) -> None:
    """Clear the way to mounts below /tmp, where a site's data may live in a trial.

    bwrap follows links while it mounts, and the agent's last process could have left
    one in its /tmp.
    """
    mounts = (spec.workspace, spec.home, *spec.extra_rw, *spec.extra_ro, cli_folder)
    for mount in mounts:
        if not mount.is_relative_to(TMP_IN_JAIL):
            continue
        here = spec.tmp
        for part in mount.relative_to(TMP_IN_JAIL).parts:
            here /= part
            if here.is_symlink() or here.is_file():
                here.unlink()


def _system_mounts() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ROOT_FOLDERS:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():  # a system that hasn't merged them into /usr
            yield from ("--ro-bind", str(path), str(path))
    # Root owns the files of /proc/sys and needs no capability to write them: through
    # kernel.core_pattern an agent would run programs outside the jail. A read-only
    # /proc also keeps it from mounting a writable one in a namespace of its own.
    yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")


def _etc_mounts(hosts: Path | None) -> Iterator[str]:
    names = [*ETC, *sorted(path.name for path in Path("/etc").glob("java-*-openjdk"))]
    if hosts is None:
        names.extend(ETC_WITH_NETWORK)
    else:
        yield from ("--ro-bind", str(hosts), "/etc/hosts")
    for name in names:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _session_mounts(spec: JailSpec) -> Iterator[str]:
    yield from ("--bind", str(spec.tmp), str(TMP_IN_JAIL))
    binds = [(path, "--bind") for path in (spec.workspace, spec.home, *spec.extra_rw)]
    binds += [(path, "--ro-bind") for path in spec.extra_ro]
    # What lies within another one comes after it, or it would be covered.
    for path, option in sorted(binds, key=lambda bind: len(bind[0].parts)):
        yield from (option, str(path), str(path))
    if spec.gateway_socket is not None:
        yield from ("--bind", str(spec.gateway_socket), str(GATEWAY_SOCKET_IN_JAIL))
    if spec.system_prompt is not None:
        yield from ("--ro-bind", str(spec.system_prompt), str(SYSTEM_PROMPT_IN_JAIL))
