"""Making private folders, and deleting what an agent left, however it was left."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def private_folder(folder: Path) -> Path:
    """Make `folder`; it and its parent are for the server's user only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink():
        raise OSError(f"{folder} is a link")
    # A parent made by mkdir has the umask's mode, and an agent may have changed it.
    for path in (folder, folder.parent):
        path.chmod(0o700)
    return folder.resolve()


def remove_tree(folder: Path) -> None:
    """Delete a folder that an agent could write, however it was left.

    `rm` and not `shutil.rmtree`: that one recurses and keeps a descriptor per level,
    so a few thousand nested folders would make a session undeletable.
    """
    if not os.path.lexists(folder):
        return
    if folder.is_symlink():
        folder.unlink()
        return
    if not _rm(folder):
        # Folders without write permission; chmod -R doesn't follow links.
        _run("chmod", "-R", "u+rwX", "--", str(folder))
        _rm(folder)
    if os.path.lexists(folder):
        raise OSError(f"{folder} could not be deleted")


def _rm(folder: Path) -> bool:
    return _run("rm", "-rf", "--", str(folder))


def _run(*command: str) -> bool:
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - fixed
    return done.returncode == 0
