"""`manage.py doctor` as a whole, with the real CLI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.server import Server, manage

pytestmark = pytest.mark.cli


def lines(output: str) -> list[tuple[str, str]]:
    """Level and subject of each line."""
    return [(line[:9].strip(), line[9:24].strip()) for line in output.splitlines()]


def test_a_running_server_is_found_well_and_left_alone(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        before = sorted(path.name for path in server.data_dir.iterdir())
        said = manage(server.data_dir, "doctor")

        assert (said.returncode, said.stderr) == (0, ""), said.stdout
        assert lines(said.stdout) == [
            ("ok", "Software"),
            ("ok", "CLI"),
            ("warning" if os.geteuid() == 0 else "ok", "User"),
            ("ok", "Data folder"),
            ("ok", "Secrets"),
            ("ok", "Disk"),
            ("ok", "Database"),
            ("ok", "Migrations"),
            ("ok", "Search"),
            ("ok", "Channel layer"),
            ("ok", "Static files"),
            ("ok", "Jail"),
            ("ok", "Self-test"),
            ("ok", "Self-test"),
            ("ok", "Self-test"),
        ]
        assert sorted(path.name for path in server.data_dir.iterdir()) == before
        assert server.rows("SELECT * FROM agents_user") == []
        assert server.rows("SELECT * FROM agents_agentsession") == []


def test_what_fails_is_named_and_the_status_is_1(tmp_path: Path) -> None:
    said = manage(
        tmp_path / "data",
        "doctor",
        OPENSWARM_REQUIRE_JAIL="1",
        PATH=str(tmp_path),  # without bubblewrap
    )

    assert said.returncode == 1
    failures = [line for line in said.stdout.splitlines() if line.startswith("failed")]
    assert len(failures) == 2
    assert "Jail" in failures[0]
    assert "bubblewrap is not installed" in failures[0]
    assert "Self-test" in failures[1]
    assert said.stderr == "2 of 13 checks failed.\n"
