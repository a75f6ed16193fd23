"""Folders of a session: private, short, and gone completely when deleted."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from agents.conf import cli_homes_dir, workspaces_dir
from agents.errors import InvalidInputError
from agents.workspaces import folders
from agents.workspaces.disk import remove_tree


def mode_of(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


def test_a_workspace_is_private_to_the_server():
    user_id, session_id = uuid4(), uuid4()

    workspace = folders.create_workspace(user_id, session_id)

    assert workspace == workspaces_dir() / str(user_id) / str(session_id)
    assert [mode_of(workspace), mode_of(workspace.parent)] == ["0o700", "0o700"]


def test_creating_a_workspace_again_keeps_its_files():
    user_id, session_id = uuid4(), uuid4()
    (folders.create_workspace(user_id, session_id) / "a.txt").write_text("kept")

    workspace = folders.create_workspace(user_id, session_id)

    assert (workspace / "a.txt").read_text() == "kept"


def test_the_folders_of_the_cli_are_private_apart_and_short():
    session_id = uuid4()

    paths = [
        folders.session_home(session_id),
        folders.session_tmp(session_id),
        folders.session_launcher_folder(session_id),
    ]

    assert [path.parent for path in paths] == [cli_homes_dir() / session_id.hex] * 3
    assert {mode_of(path) for path in paths} == {"0o700"}
    # Room for the data folder and for a socket's own name in the 107 bytes.
    assert len(str(paths[1].relative_to(cli_homes_dir().parent))) <= 40


def test_a_home_brings_a_git_identity_that_may_be_changed():
    session_id = uuid4()
    config = folders.session_home(session_id) / ".gitconfig"
    assert "agent@openswarm.invalid" in config.read_text()

    config.write_text("[user]\n\tname = Mine\n")

    folders.session_home(session_id)
    assert config.read_text() == "[user]\n\tname = Mine\n"


def test_a_link_in_the_place_of_the_git_config_is_not_written_through(tmp_path):
    session_id, target = uuid4(), tmp_path / "target"
    config = folders.session_home(session_id) / ".gitconfig"
    config.unlink()
    config.symlink_to(target)

    folders.session_home(session_id)

    assert not target.exists()


def test_deleting_leaves_nothing_and_may_be_done_twice():
    user_id, session_id = uuid4(), uuid4()
    workspace = folders.create_workspace(user_id, session_id)
    home = folders.session_home(session_id)
    (workspace / "a.txt").write_text("x")

    folders.delete_session_files(user_id, session_id)
    folders.delete_session_files(user_id, session_id)

    assert not workspace.exists()
    assert not home.parent.exists()
    assert workspace.parent.exists()  # the user's other sessions


def test_deleting_does_not_follow_links(tmp_path):
    user_id, session_id = uuid4(), uuid4()
    workspace = folders.create_workspace(user_id, session_id)
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o500)
    (workspace / "link").symlink_to(precious)

    folders.delete_session_files(user_id, session_id)

    assert mode_of(precious) == "0o500"
    assert not workspace.exists()


def test_a_folder_that_became_a_link_is_only_unlinked(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    link = tmp_path / "link"
    link.symlink_to(precious)

    remove_tree(link)

    assert not link.is_symlink()
    assert (precious / "file").exists()


def test_deep_locked_and_oddly_named_folders_are_deleted_too():
    user_id, session_id = uuid4(), uuid4()
    workspace = folders.create_workspace(user_id, session_id)
    deep = "import os\nfor _ in range(3000):\n os.mkdir('d'); os.chdir('d')"
    subprocess.run(["/usr/bin/env", "python3", "-c", deep], cwd=workspace, check=True)
    locked = workspace / "locked" / "inner"
    locked.mkdir(parents=True)
    (locked / "file").touch()
    locked.chmod(0o500)
    locked.parent.chmod(0)
    (workspace / "-rf").touch()
    Path(os.fsdecode(bytes(workspace) + b"/\xff\n")).touch()

    folders.delete_session_files(user_id, session_id)

    assert not workspace.exists()


def test_a_listing_puts_folders_first_and_reports_links_as_links(tmp_path):
    (tmp_path / "b.txt").write_text("four")
    (tmp_path / "a.txt").touch()
    (tmp_path / "z").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")

    entries = folders.list_entries(tmp_path)

    assert [(entry.name, entry.kind) for entry in entries] == [
        ("z", "folder"),
        ("a.txt", "file"),
        ("b.txt", "file"),
        ("link", "link"),
        ("pipe", "other"),
    ]
    assert entries[2].size_bytes == 4


def test_a_listing_ends_at_its_limit(tmp_path):
    for number in range(5):
        (tmp_path / str(number)).touch()

    assert len(folders.list_entries(tmp_path, limit=3)) == 3


def test_a_folder_inside_is_listed_also_through_a_link_that_stays_inside(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").touch()
    (tmp_path / "link").symlink_to("real")

    names = [
        [entry.name for entry in folders.list_entries(tmp_path, path)]
        for path in ("real", "link", "real/../link")
    ]

    assert names == [["file"]] * 3


@pytest.mark.parametrize(
    "path", ["..", "/etc", "out", "loop", "missing", "file", "a\0b", "x" * 5000]
)
def test_a_listing_never_leaves_its_root(tmp_path, path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    (root / "file").touch()

    with pytest.raises(InvalidInputError) as refused:
        folders.list_entries(root, path)

    assert refused.value.field == "path"
