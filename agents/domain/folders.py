"""Listed folders: places of this machine that an owner has opened to agents."""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from agents.conf import data_dir
from agents.errors import InvalidInputError
from agents.models import ListedFolder, User

from . import audit


def check_path(text: str) -> str:
    """The real path of a folder that may be listed.

    Raises: InvalidInputError naming the field.
    """
    path = Path(text.strip())
    if not path.is_absolute() or not _is_folder(path):
        raise InvalidInputError(
            "This is not the absolute path of a folder.", field="path"
        )
    real, ours = path.resolve(), data_dir().resolve()
    if real.is_relative_to(ours) or ours.is_relative_to(real):
        # It holds the database, the keys and everybody's workspaces.
        raise InvalidInputError(
            "This folder overlaps with the site’s own data.", field="path"
        )
    return str(real)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # not for us to see; a null byte
        return False


@transaction.atomic
def save_folder(folder: ListedFolder, actor: User) -> ListedFolder:
    """Store a folder whose path was checked; the caller knows that `actor` may."""
    is_new = folder._state.adding
    if is_new:
        folder.added_by = actor
    folder.save()
    audit.record(
        "folder.added" if is_new else "folder.changed",
        actor=actor,
        target=folder,
        path=folder.path,
    )
    return folder


@transaction.atomic
def remove_folder(folder: ListedFolder, actor: User) -> None:
    """Take it off the list; its files stay, and so do the sessions that work there."""
    audit.record("folder.removed", actor=actor, target=folder, path=folder.path)
    folder.delete()
