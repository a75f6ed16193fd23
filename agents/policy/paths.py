"""The path guard: file tools stay inside the session's folders.

Paths are judged by where they really lead (symlinks and `..` resolved), because the
operating system will follow them the same way.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .calls import ToolCall, file_pattern, named_path

# What these lead to depends on the process that asks, so nothing can be checked here.
_PROCESS_FOLDERS: Final = ("/proc", "/dev")
_PLAN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.md")
_WILDCARD: Final = re.compile(r"[*?\[{]")


class UnusablePathError(ValueError):
    """The text can't be turned into one certain path."""


@dataclass(frozen=True, slots=True)
class Place:
    """What relative paths and `~` mean to the agent."""

    cwd: Path
    home: Path | None = None


@dataclass(frozen=True, slots=True)
class Territory:
    """Where the session may read and write."""

    place: Place
    roots: tuple[Path, ...]
    readable: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    plan_dir: Path | None = None
    plan_slug: str = ""  # of the session's own plan; empty: not known yet


@dataclass(frozen=True, slots=True)
class PathFinding:
    """Why a path is refused, and the folder that would have to be added."""

    reason: str
    add_folder: Path | None = None


def real(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise UnusablePathError("This path can't be read.") from error


def lexical(raw: str, place: Place) -> Path:
    """The absolute path that a text names, before symlinks are followed."""
    if "\0" in raw:
        raise UnusablePathError("This path contains a NUL byte.")
    if raw == "~" or raw.startswith("~/"):
        if place.home is None:
            raise UnusablePathError("“~” has no meaning in this session.")
        return place.home / raw[2:]
    if raw.startswith("~"):
        raise UnusablePathError("Another user's home folder can't be reached.")
    return place.cwd / raw


def resolve(raw: str, place: Place) -> Path:
    """Where a path really leads.

    Raises:
        UnusablePathError: it leads nowhere certain.
    """
    path = lexical(raw, place)
    normal = Path(os.path.normpath(path))
    for folder in _PROCESS_FOLDERS:
        if normal.is_relative_to(folder):
            raise UnusablePathError(f"Paths below {folder} can't be checked.")
    return real(path)


def depth_inside(path: Path, folders: tuple[Path, ...]) -> int:
    """How specific the closest of the folders around a path is; 0 if none is."""
    around = (real(folder) for folder in folders)
    return max((len(f.parts) for f in around if path.is_relative_to(f)), default=0)


def is_plan_file(path: Path, plan_dir: Path | None) -> bool:
    """Whether a resolved path is exactly `<plan_dir>/<slug>.md`."""
    return (
        plan_dir is not None
        and path.parent == real(plan_dir)
        and _PLAN_NAME.fullmatch(path.name) is not None
    )


def writes_plan(call: ToolCall, territory: Territory) -> bool:
    """Whether the call writes the plan of a session that is planning."""
    if call.permission_mode != "plan" or call.tool_name not in ("Write", "Edit"):
        return False
    raw = named_path(call)
    try:
        path = resolve(raw, territory.place) if raw is not None else None
        if path is None or not is_plan_file(path, territory.plan_dir):
            return False
        return not territory.plan_slug or _is_plan_of(path, territory.plan_slug)
    except UnusablePathError:
        return False


def _is_plan_of(path: Path, slug: str) -> bool:
    """The plan of the session or, with its own id behind the slug, of a sub-agent."""
    return path.stem == slug or path.stem.startswith(f"{slug}-agent-")


def find_outside(
    call: ToolCall, territory: Territory, *, writes: bool
) -> PathFinding | None:
    """Why the path guard refuses a file tool's call; None if it has no objection."""
    raw = named_path(call)
    if raw is None:
        return PathFinding("The call names no path.")
    finding = _find_outside(raw, territory, writes=writes)
    pattern = file_pattern(call)
    if finding is None and pattern:
        finding = _find_outside_pattern(raw, pattern, territory)
    return finding


def _find_outside(
    raw: str, territory: Territory, *, writes: bool
) -> PathFinding | None:
    try:
        path = resolve(raw, territory.place)
        return _judge(path, territory, writes=writes)
    except UnusablePathError as error:
        return PathFinding(str(error))


def _judge(path: Path, territory: Territory, *, writes: bool) -> PathFinding | None:
    writable = depth_inside(path, territory.roots)
    reachable = writable if writes else _readable_depth(path, territory, writable)
    if reachable and reachable > depth_inside(path, territory.protected):
        return None
    if reachable or depth_inside(path, territory.protected):
        return PathFinding(f"This path belongs to the site itself: {path}")
    if depth_inside(path, territory.readable):
        return PathFinding(f"This path may be read, but not written: {path}")
    return PathFinding(
        f"This path is outside the session's folders: {path}", _folder_to_add(path)
    )


def _readable_depth(path: Path, territory: Territory, writable: int) -> int:
    if is_plan_file(path, territory.plan_dir):
        return len(path.parts)
    return max(writable, depth_inside(path, territory.readable))


def _folder_to_add(path: Path) -> Path | None:
    folder = path if path.is_dir() else path.parent
    return folder if len(folder.parts) > 1 else None  # never the whole disk


def _find_outside_pattern(
    base: str, pattern: str, territory: Territory
) -> PathFinding | None:
    """Judge a file pattern by the folder it starts in.

    A `..` among or after wildcards could climb out of any folder, so it is refused.
    """
    wildcard = _WILDCARD.search(pattern)
    fixed = pattern[: wildcard.start()] if wildcard else pattern
    folder = fixed[: fixed.rfind("/") + 1] if wildcard else fixed
    rest = pattern[len(folder) :]
    segments = re.split(r"[/{},]", rest)
    if wildcard and (".." in segments or ("{" in rest and "." in segments)):
        return PathFinding(f"This pattern climbs out of its folder: {pattern}")
    if wildcard and re.search(r"[{,][/~]", rest):
        return PathFinding(f"This pattern starts in more than one place: {pattern}")
    start = folder if folder.startswith(("/", "~")) else f"{base}/{folder}"
    return _find_outside(start, territory, writes=False)
