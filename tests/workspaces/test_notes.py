"""CLAUDE.md of a workspace: only a file within it, and only its beginning."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents.workspaces.notes import read_notes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outside.md").write_text("secret")
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_the_notes_are_read_up_to_the_limit(folder: Path) -> None:
    (folder / "CLAUDE.md").write_text("Use tabs.")

    assert read_notes(folder, max_bytes=100) == "Use tabs."
    assert read_notes(folder, max_bytes=3) == "Use"


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "AGENTS.md").write_text("Use spaces.")
    (folder / "CLAUDE.md").symlink_to("docs/AGENTS.md")

    assert read_notes(folder, max_bytes=100) == "Use spaces."


@pytest.mark.parametrize("target", ["../outside.md", "CLAUDE.md", ".", "missing"])
def test_a_link_to_anything_else_is_not(folder: Path, target: str) -> None:
    (folder / "CLAUDE.md").symlink_to(target)

    assert read_notes(folder, max_bytes=100) == ""


def test_a_pipe_or_a_folder_of_that_name_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "CLAUDE.md")
    assert read_notes(folder, max_bytes=100) == ""

    (folder / "CLAUDE.md").unlink()
    (folder / "CLAUDE.md").mkdir()
    assert read_notes(folder, max_bytes=100) == ""


def test_bytes_that_are_no_text_are_replaced(folder: Path) -> None:
    (folder / "CLAUDE.md").write_bytes(b"a\xffb")

    assert read_notes(folder, max_bytes=100) == "a\ufffdb"
