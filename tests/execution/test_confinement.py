"""The jail from inside; each probe also runs where it must find something."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.execution.confinement import (
    bundled_cli,
    cli_version,
    write_launcher,
)
from agents.execution.environment import GATEWAY_SOCKET_IN_JAIL

from .jail import Session, both_ways, eventually, needs_jail

CANARIES = {
    "DJANGO_SECRET_KEY": "canary-secret",
    "DATABASE_URL": "postgres://canary-database",
    "ANTHROPIC_API_KEY": "canary-key",
}
# Found in any environment that may be read; the script itself doesn't hold the word.
READ_ALL_ENVIRONMENTS = (
    "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"
    " | grep -a -o 'cana[r]y-.*' | sort -u"
)


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def under_a_server(launcher: Path, script: str) -> str:
    """Run the launcher as a child of a process that holds the canaries."""
    server = f"{shlex.quote(str(launcher))} -c {shlex.quote(script)}; true"
    return subprocess.run(
        ["/bin/sh", "-c", server],
        env={**os.environ, **CANARIES},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@needs_jail
def test_no_environment_in_the_jail_holds_a_secret_of_the_server(agent):
    found = under_a_server(agent.launcher(), READ_ALL_ENVIRONMENTS)

    assert found == ""


def test_the_canary_probe_finds_the_servers_environment_without_the_jail(agent):
    found = under_a_server(agent.launcher(jailed=False), READ_ALL_ENVIRONMENTS)

    assert found.split() == ["canary-database", "canary-key", "canary-secret"]


@needs_jail
def test_the_canary_probe_finds_a_planted_leak(agent):
    leaking = {**agent.spec().environment, "LEAK": "canary-planted"}

    found = under_a_server(agent.launcher(environment=leaking), READ_ALL_ENVIRONMENTS)

    assert found == "canary-planted\n"


@both_ways
def test_the_own_environment_is_exactly_the_allow_list(agent, jailed):
    launcher = agent.launcher(jailed=jailed, cli=Path("/usr/bin/env"))

    done = subprocess.run(
        [launcher, "-0"],
        cwd=agent.workspace,
        env={**os.environ, **CANARIES, "CLAUDE_CODE_ENTRYPOINT": "sdk-py"},
        capture_output=True,
        text=True,
        check=True,
    )

    names = {line.partition("=")[0] for line in done.stdout.split("\0") if line}
    expected = set(agent.spec(jailed=jailed).environment)
    assert names - {"PWD", "OLDPWD"} == expected | {"CLAUDE_CODE_ENTRYPOINT"}


@both_ways
def test_values_arrive_unchanged(agent, jailed):
    value = 'it\'s "quoted" $HOME `id` \\ \t and\ntwo lines ü'
    environment = {**agent.spec(jailed=jailed).environment, "ODD": value}

    done = agent.shell(
        'printf %s "$ODD"; printf \' %s\' "$0"', jailed=jailed, environment=environment
    )

    assert done.stdout == f"{value} {'/usr/bin/bash'}"


@needs_jail
def test_secrets_are_not_in_a_command_line_of_the_host(agent):
    process = agent.start("echo ready; read line")
    assert process.stdout is not None
    process.stdout.readline()

    lines = b"".join(
        path.read_bytes()
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.exists()
    )

    assert b"token-of-the-gateway" not in lines
    assert b"echo ready; read line" in lines  # the probe sees the command lines


@needs_jail
def test_another_session_is_not_there(agent, other_agent):
    secret = other_agent.workspace / "secret.txt"
    secret.write_text("theirs")

    assert agent.shell(f"cat {secret}", jailed=False).stdout == "theirs"
    assert agent.shell(f"cat {secret}").stdout == ""
    listing = agent.shell(f"ls {secret.parents[2]}").stdout.split()
    assert listing == [str(agent.user_id)]


@needs_jail
def test_the_project_and_the_machines_files_are_not_there(agent):
    project = Path(__file__).resolve().parents[2] / "manage.py"
    probe = (
        f"for f in {project} /etc/hostname /etc/shadow; do test -e $f && echo $f; done"
    )

    assert str(project) in agent.shell(probe, jailed=False).stdout
    assert agent.shell(probe).stdout == ""


@needs_jail
def test_only_the_given_folders_can_be_written(agent, tmp_path):
    shared, books = tmp_path / "shared", tmp_path / "books"
    shared.mkdir()
    books.mkdir()
    targets = [agent.workspace, shared, books, "/usr/bin", "/etc", "/", "/tmp", "$HOME"]
    probe = "".join(f"touch {t}/new 2>/dev/null && echo {t}; " for t in targets)

    written = agent.shell(probe, extra_rw=(shared,), extra_ro=(books,)).stdout.split()

    home = str(agent.spec().home)
    assert written == [str(agent.workspace), str(shared), "/tmp", home]
    assert (agent.workspace / "new").exists()
    assert (agent.spec().tmp / "new").exists()


@needs_jail
def test_kernel_settings_cannot_be_written_even_by_root(agent):
    probe = "find /proc/sys -writable 2>/dev/null | wc -l"

    assert agent.shell(probe).stdout.strip() == "0"
    if os.geteuid() == 0:
        assert int(agent.shell(probe, jailed=False).stdout) > 0


@needs_jail
def test_private_keys_of_the_machine_are_not_there(agent):
    assert agent.shell("ls /etc/ssl").stdout.split() == ["certs", "openssl.cnf"]


@needs_jail
def test_processes_of_the_host_are_not_there(agent):
    probe = "grep -z -a -l slee[p] /proc/[0-9]*/cmdline 2>/dev/null | wc -l"
    with subprocess.Popen(["sleep", "60"]) as stranger:
        outside = agent.shell(probe, jailed=False).stdout
        inside = agent.shell(probe).stdout
        stranger.kill()

    assert int(outside) >= 1
    assert inside.strip() == "0"


@needs_jail
def test_the_network_is_a_permission(agent, listener):
    probe = f"exec 3<>/dev/tcp/127.0.0.1/{listener} && echo reached"

    assert agent.shell(probe, network=True).stdout == "reached\n"
    assert agent.shell(probe, jailed=False).stdout == "reached\n"
    assert agent.shell(probe, network=False).stdout == ""


@needs_jail
def test_the_jail_has_a_loopback_of_its_own(agent):
    assert "127.0.0.1" in agent.shell("cat /etc/hosts").stdout
    assert (
        agent.shell("getent hosts localhost >/dev/null && echo known").stdout
        == "known\n"
    )


@needs_jail
def test_the_gateways_socket_is_reached_without_a_network(agent, tmp_path):
    path = tmp_path / "g.sock"
    client = f"socat -u UNIX-CONNECT:{GATEWAY_SOCKET_IN_JAIL} -"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        process = subprocess.Popen(
            [agent.launcher(gateway_socket=path), "-c", client],
            stdout=subprocess.PIPE,
            text=True,
        )
        agent.started.append(process)
        server.settimeout(20)
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"hello from the gateway")
        answer, _ = process.communicate(timeout=20)

    assert answer == "hello from the gateway"


@needs_jail
def test_git_works_in_the_jail(agent):
    done = agent.shell(
        "set -e; git init -q; echo one >a.txt; git add -A; git commit -qm first;"
        "git status --porcelain; git log --format='%an %s'; git branch --show-current"
    )

    assert done.stdout == "OpenSwarm agent first\nmain\n", done.stderr


@needs_jail
def test_the_jail_has_no_capabilities_and_gains_none(agent):
    status = agent.shell("grep -E 'Cap(Eff|Bnd)|NoNewPrivs' /proc/self/status").stdout

    assert status.split() == [
        *("CapEff:", "0" * 16),
        *("CapBnd:", "0" * 16),
        *("NoNewPrivs:", "1"),
    ]


@needs_jail
def test_no_descriptor_of_the_launcher_is_left_open(agent):
    assert agent.shell("echo /proc/$$/fd/*").stdout.count("/fd/") <= 4


@both_ways
def test_memory_is_limited(agent, jailed):
    eat = "head -c 300M /dev/zero | tail | wc -c"

    enough = agent.shell(eat, jailed=jailed)
    too_little = agent.shell(eat, jailed=jailed, max_memory_bytes=100 * 1024**2)

    assert enough.stdout.strip() == str(300 * 1024**2)
    assert too_little.stdout.strip() == "0"


@needs_jail
def test_an_agent_cannot_raise_its_limits(agent):
    done = agent.shell("ulimit -Hd; ulimit -Hu; ulimit -u 1000", max_processes=77)

    assert done.stdout.split() == [str(8 * 1024**2), "77"]
    assert done.returncode != 0


@needs_jail
def test_processes_are_limited_for_a_plain_user(plain_user_launcher):
    many = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 60 & done; echo all"

    enough = run_as_plain_user(plain_user_launcher(max_processes=50), many)
    too_few = run_as_plain_user(plain_user_launcher(max_processes=6), many)

    assert enough.stdout == "all\n"
    assert too_few.stdout == ""
    assert "fork" in too_few.stderr


@needs_jail
def test_a_plain_user_gets_the_whole_jail(plain_user_launcher):
    probe = "id -u; ls /proc | grep -c '^[0-9]'; touch file /tmp/file && echo written"

    done = run_as_plain_user(plain_user_launcher(), probe)

    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    assert done.stdout.split()[0] == str(uid), done.stderr
    assert int(done.stdout.split()[1]) < 10
    assert done.stdout.split()[2] == "written"


@pytest.fixture
def plain_user_launcher():
    """Make launchers for the user nobody, or for the own one where it isn't root."""
    with tempfile.TemporaryDirectory(prefix="os-plain-") as temporary:
        base = Path(temporary).resolve()
        base.chmod(0o711)
        for name in ("w", "h", "t"):
            (base / name).mkdir()

        def make(**changes):
            spec = replace(
                Session().spec(),
                workspace=base / "w",
                home=base / "h",
                tmp=base / "t",
                **changes,
            )
            dash = Path("/bin/sh")  # bash waits and tries again when it can't fork
            launcher = write_launcher(spec, dash, jailed=True, folder=base / "l")
            if os.geteuid() == 0:
                subprocess.run(["chown", "-R", "65534:65534", base], check=True)
            return launcher

        yield make


def run_as_plain_user(launcher: Path, script: str):
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    prefix = become if os.geteuid() == 0 else []
    return subprocess.run(
        [*prefix, launcher, "-c", script],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
    )


@both_ways
def test_the_real_cli_starts(agent, jailed):
    launcher = agent.launcher(jailed=jailed, cli=bundled_cli())

    done = subprocess.run(
        [launcher, "--version"], cwd=agent.workspace, capture_output=True, text=True
    )

    assert done.stdout == f"{cli_version()} (Claude Code)\n", done.stderr


@both_ways
def test_arguments_and_the_working_folder_arrive(agent, jailed):
    words = ["a b", "", "--", "-c", "it's", "$(id)", "--bind", "/"]

    done = subprocess.run(
        [agent.launcher(jailed=jailed), "-c", 'pwd; printf "<%s>" "$@"', "sh", *words],
        cwd=agent.workspace,
        capture_output=True,
        text=True,
    )

    printed = "".join(f"<{word}>" for word in words)
    assert done.stdout == f"{agent.workspace}\n{printed}"


@both_ways
def test_launcher_and_secrets_are_for_the_server_alone(agent, jailed):
    launcher = agent.launcher(jailed=jailed)

    modes = {
        path.name: oct(path.stat().st_mode & 0o777)
        for path in launcher.parent.iterdir()
    }
    secret_file = "jail.args" if jailed else "unjailed.sh"
    assert modes["launcher"] == "0o700"
    assert modes[secret_file] == "0o600"
    assert oct(launcher.parent.stat().st_mode & 0o777) == "0o700"
    assert "token-of-the-gateway" not in launcher.read_text()


@both_ways
def test_this_process_never_has_the_launcher_open_for_writing(agent, jailed):
    """Else a child that another thread starts then has it, too, and as long as any
    process has it the kernel does not run it (ETXTBSY): every so often a start failed.
    """
    with opened_for_writing() as names:
        launcher = agent.launcher(jailed=jailed)

    assert ("jail.args" if jailed else "unjailed.sh") in names, "the control"
    assert launcher.name not in names
    assert agent.shell("echo up", jailed=jailed).stdout == "up\n"


@contextmanager
def opened_for_writing() -> Iterator[set[str]]:
    """The names of the files that this process opens for writing meanwhile."""
    names: set[str] = set()
    is_over = False

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and not is_over and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            names.add(Path(str(arguments[0])).name)

    sys.addaudithook(note)  # stays for good, which is why it is told when it's over
    yield names
    is_over = True


@needs_jail
def test_an_agent_does_not_see_its_launcher(agent):
    launcher = agent.launcher()

    assert agent.shell(f"cat {launcher}").stdout == ""


def test_it_refuses_to_write_the_launcher_where_an_agent_could_change_it(agent):
    spec = agent.spec()

    with pytest.raises(ValueError, match="shown to the agent"):
        write_launcher(spec, Path("/bin/sh"), jailed=True, folder=spec.home / "l")


def test_it_refuses_paths_that_lead_elsewhere(agent, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/")

    with pytest.raises(ValueError, match="not a real path"):
        agent.launcher(extra_ro=(link,))


@needs_jail
def test_a_link_left_in_tmp_does_not_redirect_a_mount(agent, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    # The data folder of the tests is below /tmp, so mounts lead through the agent's.
    inside = agent.spec().tmp / agent.workspace.relative_to("/tmp").parts[0]
    inside.symlink_to(outside)

    done = agent.shell("pwd; touch here")

    assert done.stdout == f"{agent.workspace}\n", done.stderr
    assert list(outside.iterdir()) == []


def test_the_cli_says_its_version():
    assert cli_version() == "2.1.332"


@both_ways
def test_a_dying_server_takes_the_agent_with_it(agent, jailed):
    launcher = agent.launcher(jailed=jailed)
    server = subprocess.Popen(
        ["/bin/sh", "-c", '"$0" -c "echo up; sleep 60; true"; true', launcher],
        stdout=subprocess.PIPE,
        text=True,
    )
    agent.started.append(server)
    assert server.stdout is not None
    assert server.stdout.readline() == "up\n"
    (pid,) = find_children(server.pid)

    server.kill()

    eventually(lambda: not Path(f"/proc/{pid}").exists() or is_zombie(pid))


def find_children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in children.split()]


def is_zombie(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        )
    except OSError:
        return True
