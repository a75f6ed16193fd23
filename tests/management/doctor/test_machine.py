"""Each check of the machine: what it says when all is well, and when it is not."""

from __future__ import annotations

import os
import shutil
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest

from agents.execution.confinement import cli_version, reset_probe
from agents.management.doctor import machine

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("PATH", str(tmp_path))
    yield
    reset_probe()


def test_software_names_the_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = machine.check_software()

    assert finding.level == "ok"
    assert "claude-agent-sdk 0.2.189" in finding.text

    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    assert machine.check_software().level == "failed"


@pytest.mark.cli
def test_the_cli_is_the_one_of_the_sdk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cli_version.cache_clear()
    assert machine.check_cli().level == "ok"

    cli = tmp_path / "_bundled" / "claude"
    cli.parent.mkdir()
    monkeypatch.setattr(claude_agent_sdk, "__file__", str(tmp_path / "__init__.py"))
    cli_version.cache_clear()
    missing = machine.check_cli()
    assert missing.level == "failed"
    assert "Install the requirements again" in missing.text

    cli.write_text("#!/bin/sh\necho 1.2.3 '(Claude Code)'\n")
    cli.chmod(0o700)
    other = machine.check_cli()
    assert other.level == "failed"
    assert other.text.startswith("Claude Code 1.2.3 is installed")
    cli_version.cache_clear()


def test_root_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert machine.check_user().level == "ok"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert machine.check_user().level == "warning"


@pytest.mark.parametrize(
    ("free", "level"),
    [(2**40, "ok"), (2**30, "warning"), (2**20, "failed")],
)
def test_a_full_disk_fails(
    monkeypatch: pytest.MonkeyPatch, free: int, level: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(2**41, 0, free))

    assert machine.check_disk().level == level


def test_no_jail_is_a_warning_unless_it_is_required(
    no_bubblewrap: None, override_conf: Any
) -> None:
    finding = machine.check_jail()
    assert finding.level == "warning"
    assert "bubblewrap is not installed" in finding.text
    assert "not jailed" in finding.text

    override_conf(require_jail=True)
    assert machine.check_jail().level == "failed"
