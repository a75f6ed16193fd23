"""The folders of a session: its workspace, and what its CLI process needs.

    <data>/workspaces/<user>/<session>/   the agent's files, kept until deleted
    <data>/cli/<session>/h t l            the CLI's home, its /tmp, our launcher
    <data>/snapshots/<session>/           earlier states of the workspace (snapshots.py)

Agents write to the workspace, `h` and `t`; nothing below them is ever trusted, and
`l` is never shown to an agent, since it holds what the server executes.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Literal
from uuid import UUID

from agents.conf import cli_homes_dir, snapshots_dir, workspaces_dir
from agents.errors import InvalidInputError

from . import worktrees
from .disk import private_folder, remove_tree

GIT_CONFIG = """\
[user]
	name = OpenSwarm agent
	email = agent@openswarm.invalid
[init]
	defaultBranch = main
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a folder's listing; a link is reported, never followed."""

    name: str
    kind: Literal["folder", "file", "link", "other"]
    size_bytes: int
    modified_at: datetime


def workspace_of(user_id: UUID, session_id: UUID) -> Path:
    return workspaces_dir() / str(user_id) / str(session_id)


def create_workspace(user_id: UUID, session_id: UUID) -> Path:
    """Return the session's workspace, made with mode 0700 if it isn't there yet."""
    return private_folder(workspace_of(user_id, session_id))


def home_path(session_id: UUID) -> Path:
    """Where the CLI's HOME is, or will be; nothing is made."""
    return _cli_folder(session_id) / "h"


def tmp_path(session_id: UUID) -> Path:
    """Where the folder that the jail shows as /tmp is, or will be."""
    return _cli_folder(session_id) / "t"


def session_home(session_id: UUID) -> Path:
    """Return the CLI's HOME, with a git identity so that a plain commit works."""
    home = private_folder(home_path(session_id))
    try:
        # "x" also refuses a link that the agent has left in the place of the file.
        with (home / ".gitconfig").open("x") as file:
            file.write(GIT_CONFIG)
    except FileExistsError:
        pass  # a second start; the agent may have edited it
    return home


def session_tmp(session_id: UUID) -> Path:
    """Return the folder that the jail shows as /tmp: on disk, not in memory."""
    return private_folder(tmp_path(session_id))


def session_launcher_folder(session_id: UUID) -> Path:
    """Return the folder of the launcher; no agent may see or write it."""
    return private_folder(_cli_folder(session_id) / "l")


def delete_session_files(user_id: UUID, session_id: UUID) -> None:
    """Delete all folders of the session; its processes must be gone.

    Links are removed, not followed. Deleting twice is fine. Of a worktree the branch
    stays in its repository if it has commits that no other branch has.

    Raises:
        OSError: something could not be deleted.
    """
    worktrees.forget(session_id)
    remove_tree(workspace_of(user_id, session_id))
    remove_tree(_cli_folder(session_id))
    remove_tree(snapshots_dir() / session_id.hex)


def list_entries(root: Path, relative: str = "", *, limit: int = 1000) -> list[Entry]:
    """List a folder below `root`: folders first, then by name, at most `limit`.

    Raises:
        InvalidInputError: the path leaves `root`, or isn't a readable folder.
    """
    folder = resolve_inside(root, relative)
    try:
        with os.scandir(folder) as found:
            entries = [
                entry for item in islice(found, limit) if (entry := _entry(item))
            ]
    except OSError as error:
        raise InvalidInputError("This folder can't be read.", field="path") from error
    return sorted(entries, key=lambda entry: (entry.kind != "folder", entry.name))


def resolve_inside(root: Path, relative: str) -> Path:
    """Return the real path of `relative` below `root`, links and `..` resolved.

    Raises:
        InvalidInputError: the path leaves `root` or can't be a path at all.
    """
    real_root = root.resolve()
    try:
        path = (real_root / relative).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # link loop, too long, NUL
        raise InvalidInputError("This is not a usable path.", field="path") from error
    if not path.is_relative_to(real_root):
        raise InvalidInputError("This path leaves the workspace.", field="path")
    return path


def _cli_folder(session_id: UUID) -> Path:
    return cli_homes_dir() / session_id.hex


def _entry(item: os.DirEntry[str]) -> Entry | None:
    try:
        found = item.stat(follow_symlinks=False)
    except FileNotFoundError:  # gone since the listing began
        return None
    modified_at = datetime.fromtimestamp(found.st_mtime, UTC)
    return Entry(item.name, _kind(found.st_mode), found.st_size, modified_at)


def _kind(mode: int) -> Literal["folder", "file", "link", "other"]:
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "other"
