"""Reading and writing below a folder that an agent changes at the same time.

Every path is walked from the folder's own descriptor, one part after the other, and
no link is followed anywhere on the way. So whatever is swapped for a link meanwhile,
nothing outside the folder is read, written or deleted. Paths are bytes, as the kernel
has them: names need not be text.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FILE, PROGRAM, LINK = "100644", "100755", "120000"
Mode = Literal["100644", "100755", "120000"]

_WALK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a pipe in the place of a file must not keep us waiting.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Facts:
    """What one entry is, and what changes whenever its content does."""

    mode: Mode
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Found:
    name: bytes
    is_folder: bool
    is_special: bool  # a pipe, socket or device
    facts: Facts | None  # None for all but files and links


def parent_of(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def parents_of(path: bytes) -> Iterator[bytes]:
    """The folders that a path lies in, nearest first, without the root."""
    while path := parent_of(path):
        yield path


class Tree:
    """A folder, held open: it stays the same one even if its path is replaced."""

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, _WALK)

    def close(self) -> None:
        os.close(self._root)

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self, folder: bytes) -> list[Found]:
        """Raises: OSError when it isn't a folder (any more) or can't be read."""
        with self._folder(folder) as parent:
            listed = os.open(b".", _LIST, dir_fd=parent)
            try:
                with os.scandir(listed) as entries:
                    found = (_found(entry) for entry in entries)
                    return [entry for entry in found if entry is not None]
            finally:
                os.close(listed)

    def facts(self, path: bytes) -> Facts | None:
        """What a file or link is now; None when nothing such is there."""
        try:
            with self._parent(path) as (parent, name):
                return _facts(os.stat(name, dir_fd=parent, follow_symlinks=False))
        except OSError:
            return None

    def read(self, path: bytes, mode: Mode, *, max_bytes: int) -> bytes | None:
        """The content of a file or the target of a link.

        Returns: None when it is larger than that.
        Raises: OSError when it is no such thing any more.
        """
        with self._parent(path) as (parent, name):
            if mode == LINK:
                return os.readlink(name, dir_fd=parent)
            with os.fdopen(os.open(name, _READ, dir_fd=parent), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise FileNotFoundError(os.fsdecode(path))
                content = file.read(max_bytes + 1)
        return content if len(content) <= max_bytes else None

    def write(self, path: bytes, mode: Mode, content: bytes) -> None:
        """Put a file or link in place at once, with its folders.

        A file in its place is replaced, not written into: it may have other names.

        Raises: OSError, for one when a folder is in its place.
        """
        with self._parent(path, make=True) as (parent, name):
            draft = b".openswarm-" + secrets.token_hex(8).encode()
            try:
                _draft(draft, mode, content, parent)
                os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=parent)
                raise

    def make_folder(self, folder: bytes) -> None:
        with self._folder(folder, make=True):
            pass

    def remove(self, path: bytes) -> None:
        """Raises: OSError, for one when it is a folder."""
        with self._parent(path) as (parent, name):
            os.unlink(name, dir_fd=parent)

    def remove_folder(self, folder: bytes) -> None:
        """Raises: OSError, for one when it isn't empty."""
        with self._parent(folder) as (parent, name):
            os.rmdir(name, dir_fd=parent)

    @contextmanager
    def _parent(
        self, path: bytes, *, make: bool = False
    ) -> Iterator[tuple[int, bytes]]:
        with self._folder(parent_of(path), make=make) as parent:
            yield parent, path.rpartition(b"/")[2]

    @contextmanager
    def _folder(self, folder: bytes, *, make: bool = False) -> Iterator[int]:
        here = os.dup(self._root)
        try:
            for part in folder.split(b"/") if folder else ():
                if part in (b"", b".", b".."):
                    raise FileNotFoundError(os.fsdecode(folder))
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=here)
                below = os.open(part, _WALK, dir_fd=here)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)


def _found(entry: os.DirEntry[str]) -> Found | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # gone since the listing began
        return None
    facts, is_folder = _facts(status), stat.S_ISDIR(status.st_mode)
    return Found(
        name=os.fsencode(entry.name),
        is_folder=is_folder,
        is_special=facts is None and not is_folder,
        facts=facts,
    )


def _facts(status: os.stat_result) -> Facts | None:
    mode: Mode
    if stat.S_ISLNK(status.st_mode):
        mode = "120000"
    elif stat.S_ISREG(status.st_mode):
        mode = "100755" if status.st_mode & stat.S_IXUSR else "100644"
    else:
        return None
    return Facts(
        mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
    )


def _draft(name: bytes, mode: Mode, content: bytes, parent: int) -> None:
    if mode == LINK:
        os.symlink(content, name, dir_fd=parent)
        return
    permissions = 0o777 if mode == PROGRAM else 0o666  # the umask takes its part
    with os.fdopen(os.open(name, _CREATE, permissions, dir_fd=parent), "wb") as file:
        file.write(content)
