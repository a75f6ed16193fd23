"""Git's own small jail: what it shows, what it lets be written, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

from agents.workspaces.confined import confine
from tests.execution.jail import needs_jail

pytestmark = needs_jail


def run(script: str, writable: list[Path], readable: list[Path]) -> str:
    command = confine(["/bin/sh", "-c", script], writable, readable)
    return subprocess.run(command, capture_output=True, text=True).stdout


def test_only_the_given_folders_are_there(tmp_path):
    given, hidden = tmp_path / "given", tmp_path / "hidden"
    for folder in (given, hidden):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    script = f"cat {given}/file {hidden}/file; test -e /etc && echo etc"

    assert run(script, [], [given]) == "given"
    assert run(script, [], [given, hidden]) == "givenhidden"


def test_what_is_to_be_read_only_is_so_also_within_what_is_not(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    script = f"touch {tmp_path}/a; touch {inner}/b; ls {tmp_path} {inner}"

    run(script, [tmp_path], [inner])
    assert [(tmp_path / "a").exists(), (inner / "b").exists()] == [True, False]
    run(script, [inner, tmp_path], [tmp_path])
    assert (inner / "b").exists()


def test_there_is_no_network():
    script = "cat /proc/net/dev | grep -c :"

    assert run(script, [], []).strip() == "1"  # the loopback of its own
