"""The plugin folder that shows a person's skills to the CLI."""

from __future__ import annotations

import json
import stat
from uuid import uuid4

import pytest

from agents.errors import InvalidInputError
from agents.workspaces.plugins import (
    forget_other_plugins,
    plugins_path,
    write_plugin,
)
from agents.workspaces.skill_packages import SkillPackage

SKILL = SkillPackage("review", "When", "Look twice.", {"a/b.txt": b"x"})


def test_the_folder_holds_exactly_the_skills() -> None:
    session_id = uuid4()

    folder = write_plugin(session_id, [SKILL])

    assert folder is not None
    files = {
        str(path.relative_to(folder)): path
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert sorted(files) == [
        ".claude-plugin/plugin.json",
        "skills/review/SKILL.md",
        "skills/review/a/b.txt",
    ]
    assert json.loads(files[".claude-plugin/plugin.json"].read_text())["name"] == "my"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in files.values()}
    assert modes == {0o400}


def test_the_same_skills_are_the_same_folder_and_others_another() -> None:
    session_id = uuid4()
    first = write_plugin(session_id, [SKILL])
    again = write_plugin(session_id, [SKILL])
    changed = SkillPackage("review", "When", "Look thrice.")
    second = write_plugin(session_id, [changed])

    assert first == again != second
    forget_other_plugins(session_id, second)
    assert [path.resolve() for path in plugins_path(session_id).iterdir()] == [second]
    forget_other_plugins(session_id, None)
    assert not list(plugins_path(session_id).iterdir())


def test_without_skills_there_is_no_folder() -> None:
    session_id = uuid4()

    assert write_plugin(session_id, []) is None
    assert not plugins_path(session_id).exists()


def test_a_path_that_left_the_folder_is_never_written() -> None:
    stored = SkillPackage("review", "When", "x", {"../../../evil": b"x"})

    with pytest.raises(InvalidInputError):
        write_plugin(uuid4(), [stored])
