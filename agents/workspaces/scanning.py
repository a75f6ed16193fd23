"""Which files of a workspace are recorded: the walk, what is left out, the limits.

Left out are git's own folders, what the project's .gitignore names, what tools can
make again (`LEFT_OUT`, which a project may overrule with a `!` line in its .gitignore)
and folders that say themselves that they are a cache. Those are never touched by a
restore either.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agents.conf import conf
from agents.errors import WorkspaceError

from .git import Git
from .trees import LINK, Facts, Found, Tree, parents_of

GIT_FOLDER = b".git"
CACHE_TAG = b"CACHEDIR.TAG"
CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
MAX_ENTRIES = 200_000  # on one level, ignored ones included
MAX_DEPTH = 100
MAX_PATH_BYTES = 4000  # git and the kernel stop at 4096
LEFT_OUT = """\
node_modules/
bower_components/
.venv/
venv/
__pycache__/
*.py[co]
.tox/
.nox/
.eggs/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.hypothesis/
.ipynb_checkpoints/
target/
.gradle/
.m2/
.next/
.nuxt/
.svelte-kit/
.turbo/
.parcel-cache/
.cache/
.npm/
.yarn/cache/
.pnpm-store/
.terraform/
.direnv/
.DS_Store
"""


@dataclass(slots=True)
class Scan:
    """What a workspace holds, as far as it is recorded."""

    files: dict[bytes, Facts] = field(default_factory=dict)
    folders: set[bytes] = field(default_factory=set)
    """Those with nothing recorded in them; the others follow from their files."""
    skipped: set[bytes] = field(default_factory=set)
    """Files too large and what can't be read: not recorded, and never touched."""
    total_bytes: int = 0

    def add(self, path: bytes, facts: Facts) -> None:
        """Raises: WorkspaceError when the workspace is over the limits."""
        limits = conf()
        if facts.mode != LINK and facts.size > limits.snapshot_max_file_bytes:
            self.skipped.add(path)
            return
        self.files[path] = facts
        self.total_bytes += facts.size
        if len(self.files) > limits.snapshot_max_files:
            raise WorkspaceError(
                f"The folder holds more than {limits.snapshot_max_files:,} files."
            )
        if self.total_bytes > limits.snapshot_max_total_bytes:
            megabytes = limits.snapshot_max_total_bytes // 1024**2
            raise WorkspaceError(f"The folder holds more than {megabytes:,} MB.")

    def include(self, tree: Tree, paths: Iterable[bytes]) -> None:
        """Add those of `paths` that are there although they are ignored."""
        for path in paths:
            if path in self.files or path in self.skipped:
                continue
            facts = tree.facts(path)
            if facts is not None:
                self.add(path, facts)
                self.folders.difference_update(parents_of(path))


def scan(tree: Tree, git: Git) -> Scan:
    """Walk the whole workspace, one level of folders after the other.

    `git` has the workspace as its work tree; it is asked once a level.

    Raises: WorkspaceError when it is over the limits; OSError when it is gone.
    """
    result = Scan()
    level = [b""]
    for _ in range(MAX_DEPTH):
        level = _scan_level(tree, git, level, result)
        if not level:
            break
    result.skipped.update(level)  # deeper than anybody works
    result.folders -= _parents_of_all([*result.files, *result.folders])
    return result


def _scan_level(tree: Tree, git: Git, level: list[bytes], result: Scan) -> list[bytes]:
    git.deadline.left()
    found: dict[bytes, Found] = {}
    for folder in level:
        entries = _entries(tree, folder, result)
        found |= entries
        if len(found) > MAX_ENTRIES:
            raise WorkspaceError("The folder holds too many entries to look through.")
    ignored = ignored_paths(git, found)
    below: list[bytes] = []
    for path in found.keys() - ignored:
        entry = found[path]
        if len(path) > MAX_PATH_BYTES:
            result.skipped.add(path)
        elif entry.is_folder:
            below.append(path)
        elif entry.facts is not None:
            result.add(path, entry.facts)
    return sorted(below)


def _entries(tree: Tree, folder: bytes, result: Scan) -> dict[bytes, Found]:
    """The entries of one folder by path; none when it is a cache."""
    try:
        entries = {entry.name: entry for entry in tree.entries(folder)}
    except PermissionError:
        result.skipped.add(folder)
        return {}
    except OSError:
        if not folder:
            raise
        return {}  # gone since its parent was listed
    rules = entries.get(b".gitignore")
    if rules is not None and rules.is_special:
        # Git would wait for somebody to write to the pipe.
        name = os.fsdecode(folder) or "the folder"
        raise WorkspaceError(f"The .gitignore in {name!r} is not a file.")
    if folder and CACHE_TAG in entries and _is_cache(tree, folder):
        return {}
    if folder:
        result.folders.add(folder)
    entries.pop(GIT_FOLDER, None)
    prefix = folder + b"/" if folder else b""
    return {prefix + name: entry for name, entry in entries.items()}


def _is_cache(tree: Tree, folder: bytes) -> bool:
    tag = folder + b"/" + CACHE_TAG
    try:
        content = tree.read(tag, "100644", max_bytes=64 * 1024)
    except OSError:
        return False
    return content is not None and content.startswith(CACHE_SIGNATURE)


def ignored_paths(git: Git, paths: Iterable[bytes]) -> set[bytes]:
    """Those that the project's .gitignore files or `LEFT_OUT` name."""
    # "./": a name that begins with a colon is not meant as a pattern.
    asked = b"".join(
        b"./" + path + b"\0" for path in paths if len(path) <= MAX_PATH_BYTES
    )
    if not asked:
        return set()
    answer = git.run(
        "check-ignore", "--no-index", "--stdin", "-z", data=asked, accepted=(0, 1)
    )
    return {path.removeprefix(b"./") for path in answer.split(b"\0") if path}


def write_left_out(git_dir: Path) -> None:
    """Give a repository of ours the list of what tools can make again."""
    info = git_dir / "info"
    info.mkdir(exist_ok=True)
    (info / "exclude").write_text(LEFT_OUT)


def _parents_of_all(paths: Iterable[bytes]) -> set[bytes]:
    parents: set[bytes] = set()
    for path in paths:
        for parent in parents_of(path):
            if parent in parents:
                break
            parents.add(parent)
    return parents
