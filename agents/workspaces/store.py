"""The repository behind a session's snapshots: recording a state, putting it back.

What it is and where it lies stands in `snapshots.py`, which is the door to it and
holds the lock for everything here.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from agents.conf import conf
from agents.errors import WorkspaceError

from .git import Deadline, Git
from .scanning import Scan, ignored_paths, scan, write_left_out
from .trees import Facts, Mode, Tree, parents_of

MAX_PATCH_BYTES = 2_000_000
MAX_NAMES = 100
LOCK_POLL_SECONDS = 0.02
# A file that changed just before it was read may change again without its facts
# changing, since clocks of file systems tick slowly: it is read again next time.
SETTLED_NS = 1_000_000_000
REF, ASIDE_REF = "refs/heads/main", "refs/openswarm/aside"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
CONFIG = {
    "core.compression": "1",
    "core.bigFileThreshold": "1m",  # no deltas of large files: they cost seconds
    "gc.auto": "2000",
    "gc.autoPackLimit": "30",
}
_COMMIT_ID = re.compile(r"[0-9a-f]{40}")
_GITIGNORE = b".gitignore"
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color")

Entries = dict[bytes, tuple[Mode, str]]


@dataclass(frozen=True, slots=True)
class Taken:
    """A recorded state; `commit` equals `parent` when nothing had changed."""

    commit: str
    parent: str  # the state recorded before this one; "" for the first
    files_changed: int
    files_read: int
    skipped: list[str]  # the first of what was left out for its size


@dataclass(frozen=True, slots=True)
class Counts:
    """How much two states differ."""

    files: int
    added: int  # lines
    removed: int


@dataclass(frozen=True, slots=True)
class State:
    """What one commit holds."""

    commit: str = ""
    files: Entries = field(default_factory=dict)
    folders: frozenset[bytes] = frozenset()  # the empty ones
    skipped: frozenset[bytes] = frozenset()

    def equals(self, other: State) -> bool:
        return (self.files, self.folders, self.skipped) == (
            other.files,
            other.folders,
            other.skipped,
        )

    def changes_since(self, other: State) -> int:
        paths = self.files.keys() | other.files.keys()
        return sum(self.files.get(path) != other.files.get(path) for path in paths)

    def all_folders(self) -> set[bytes]:
        folders = set(self.folders)
        for path in (*self.files, *self.folders):
            folders.update(parents_of(path))
        return folders

    def skips(self, path: bytes) -> bool:
        return path in self.skipped or not self.skipped.isdisjoint(parents_of(path))

    def rules(self) -> Entries:
        return {
            path: entry
            for path, entry in self.files.items()
            if path.rpartition(b"/")[2] == _GITIGNORE
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What a restore does, from the state now to the one asked for."""

    now: State
    target: State
    remove: list[bytes]
    write: list[bytes]

    def outcome(self) -> State:
        """What the workspace will hold, unless something stands in the way."""
        files = dict(self.now.files)
        for path in self.remove:
            del files[path]
        files |= {path: self.target.files[path] for path in self.write}
        return State(files=files, folders=self.target.folders)


@contextmanager
def locked(path: Path, deadline: Deadline) -> Iterator[None]:
    """One at a time, over all threads and processes.

    Raises: WorkspaceError when the other one is not done in time.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _try_lock(lock):
            time.sleep(min(LOCK_POLL_SECONDS, deadline.left()))
        yield
    finally:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def names_of(paths: Iterable[bytes]) -> list[str]:
    """The first of these as text for people."""
    return [path.decode(errors="replace") for path in sorted(paths)[:MAX_NAMES]]


class Store:
    def __init__(self, home: Path, folder: Path | None, deadline: Deadline) -> None:
        self.deadline = deadline
        self._home = home
        self._folder = folder
        self._repository = home / "repo"

    def make_repository(self) -> None:
        if not (self._repository / "HEAD").exists():
            self._repository.mkdir(mode=0o700, exist_ok=True)
            self._git().run("init", "--bare", "--quiet", "--template=")
        write_left_out(self._repository)

    def record(self, also: Iterable[bytes] = ()) -> tuple[State, Taken]:
        """Record the workspace as it is, with the paths `also` even if ignored.

        Raises: WorkspaceError, OSError.
        """
        assert self._folder is not None, "opened for a workspace"
        head, known = self._head()
        started_ns = time.time_ns()
        with Tree(self._folder) as tree:
            found = scan(tree, self._git(work_tree=self._folder))
            found.include(tree, also)
            reading = _Reading(tree, found, known, head)
            if reading.is_needed or not reading.state().equals(head) or not head.commit:
                self._check_history()
                self._git().feed(
                    *("fast-import", "--quiet", "--done", "--force"),
                    chunks=reading.import_stream(),
                )
        state = reading.state(self._resolve(REF))
        self._remember(state, found.files, started_ns - SETTLED_NS)
        if state.commit != head.commit:
            self._tidy()
        return state, Taken(
            commit=state.commit,
            parent=head.commit,
            files_changed=state.changes_since(head),
            files_read=reading.files_read,
            skipped=names_of(state.skipped),
        )

    def plan(self, commit: str) -> tuple[Plan, Taken]:
        """Record the workspace and say what turns it into `commit`."""
        target = self._state(commit)
        now, taken = self.record(also=target.files)
        added = [path for path in now.files if path not in target.files]
        was_ignored = self._ignored_by(target, now, added)
        plan = Plan(
            now=now,
            target=target,
            remove=[
                path
                for path in added
                if path not in was_ignored and not target.skips(path)
            ],
            write=[
                path
                for path, entry in target.files.items()
                if now.files.get(path) != entry and not now.skips(path)
            ],
        )
        return plan, taken

    def apply(self, plan: Plan) -> list[bytes]:
        """Carry out a plan. Returns: the paths where something stood in the way."""
        assert self._folder is not None, "opened for a workspace"
        kept: list[bytes] = []
        with Tree(self._folder) as tree:
            for path in plan.remove:
                with _noting(kept, path), suppress(FileNotFoundError):
                    tree.remove(path)
            surplus = plan.now.all_folders() - plan.target.all_folders()
            for folder in sorted(surplus, key=lambda path: -path.count(b"/")):
                with suppress(OSError):  # holds what is never touched
                    tree.remove_folder(folder)
            for path, content in self._contents(plan):
                with _noting(kept, path):
                    tree.write(path, plan.target.files[path][0], content)
            for folder in plan.target.folders:
                with _noting(kept, folder):
                    tree.make_folder(folder)
        return kept

    def commit_aside(self, state: State) -> str:
        """Make a commit that is not part of the history; the next one replaces it."""
        stream = [*_commit_stream(state, parent="", ref=ASIDE_REF), b"done\n"]
        self._git().feed("fast-import", "--quiet", "--done", "--force", chunks=stream)
        return self._resolve(ASIDE_REF)

    def patch(self, commit_a: str, commit_b: str) -> str:
        """The unified diff between two commits, cut at its limit."""
        printed = self._git().run(
            *("diff-tree", "-r", "-p", "-M", *_PLAIN),
            *("--src-prefix=a/", "--dst-prefix=b/", *_trees(commit_a, commit_b), "--"),
            max_output_bytes=MAX_PATCH_BYTES,
            truncated=True,
        )
        return printed.decode(errors="replace")

    def counts(self, commit_a: str, commit_b: str) -> Counts:
        """How much two commits differ; binary files have no lines."""
        printed = self._git().run(
            *("diff-tree", "-r", "-M", "--numstat", *_PLAIN),
            *(*_trees(commit_a, commit_b), "--"),
        )
        lines = [line.split(b"\t")[:2] for line in printed.splitlines()]
        return Counts(
            files=len(lines),
            added=sum(int(added) for added, _ in lines if added != b"-"),
            removed=sum(int(removed) for _, removed in lines if removed != b"-"),
        )

    def _git(self, work_tree: Path | None = None) -> Git:
        return Git(self._repository, self.deadline, work_tree=work_tree, config=CONFIG)

    def _resolve(self, ref: str) -> str:
        """The commit that a ref of ours names, "" if it has none yet."""
        answer = self._git().run("rev-parse", "-q", "--verify", ref, accepted=(0, 1))
        return answer.decode().strip()

    def _head(self) -> tuple[State, dict[bytes, Facts]]:
        """The newest state, and the facts of its files that tell a change."""
        commit = self._resolve(REF)
        if not commit:
            return State(), {}
        try:
            remembered = json.loads((self._home / "known.json").read_bytes())
            facts = {
                os.fsencode(path): Facts(*values)
                for path, values in remembered["facts"].items()
            }
            is_current = remembered["commit"] == commit
        except (OSError, ValueError, KeyError, TypeError):
            is_current, facts = False, {}
        return self._state(commit), facts if is_current else {}

    def _remember(
        self, state: State, facts: dict[bytes, Facts], settled_ns: int
    ) -> None:
        settled = {
            os.fsdecode(path): _values(facts[path])
            for path in state.files
            if facts[path].ctime_ns < settled_ns
        }
        draft = self._home / "known.json.new"
        draft.write_text(json.dumps({"commit": state.commit, "facts": settled}))
        draft.replace(self._home / "known.json")

    def _state(self, commit: str) -> State:
        """Raises: WorkspaceError when there is no such commit."""
        message = self._git().run("cat-file", "commit", _checked(commit))
        listed = self._git().run("ls-tree", "-r", "-z", "--full-tree", commit)
        files: Entries = {}
        for line in listed.split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, _, object_id = facts.decode().split(" ")
            files[path] = (mode, object_id)  # type: ignore[assignment]  # we wrote it
        left = json.loads(message.partition(b"\n\n")[2].partition(b"\n")[2])
        return State(
            commit=commit,
            files=files,
            folders=frozenset(map(os.fsencode, left["folders"])),
            skipped=frozenset(map(os.fsencode, left["skipped"])),
        )

    def _contents(self, plan: Plan) -> Iterator[tuple[bytes, bytes]]:
        asked = "".join(f"{plan.target.files[path][1]}\n" for path in plan.write)
        with self._git().stream("cat-file", "--batch", data=asked.encode()) as output:
            for path in plan.write:
                yield path, _next_object(output)

    def _ignored_by(self, target: State, now: State, paths: list[bytes]) -> set[bytes]:
        """Those of `paths` that were left out when `target` was recorded.

        The rules may have changed since: what was ignored then wasn't made since. So
        git is asked in a copy of the folders that holds the rules of then.
        """
        rules = target.rules()
        if not paths or rules == now.rules():
            return set()
        with (
            tempfile.TemporaryDirectory(dir=self._home) as copy,
            Tree(Path(copy)) as tree,
        ):
            plan = Plan(now=now, target=target, remove=[], write=list(rules))
            for path, content in self._contents(plan):
                tree.write(path, rules[path][0], content)
            for parent in {parent for path in paths for parent in parents_of(path)}:
                tree.make_folder(parent)
            return ignored_paths(self._git(work_tree=Path(copy)), paths)

    def _check_history(self) -> None:
        counted = self._git().run("count-objects", "-v").decode()
        sizes = dict(line.split(": ", 1) for line in counted.splitlines())
        used_bytes = (int(sizes["size"]) + int(sizes["size-pack"])) * 1024
        if used_bytes > conf().snapshot_max_history_bytes:
            raise WorkspaceError("The recorded history of this folder is full.")

    def _tidy(self) -> None:
        """Pack the history now and then; what was recorded stays if that fails."""
        with suppress(WorkspaceError):
            self._git().run("gc", "--auto", "--quiet")


class _Reading:
    """Reads what may have changed, and tells git: once, as `import_stream`."""

    def __init__(
        self, tree: Tree, found: Scan, known: dict[bytes, Facts], head: State
    ) -> None:
        self.files_read = 0
        self._tree = tree
        self._found = found
        self._head = head
        self._files: Entries = {}
        self._unread: list[bytes] = []
        for path, facts in found.files.items():
            if path in head.files and known.get(path) == facts:
                self._files[path] = head.files[path]
            else:
                self._unread.append(path)

    @property
    def is_needed(self) -> bool:
        return bool(self._unread)

    def state(self, commit: str = "") -> State:
        return State(
            commit=commit,
            files=self._files,
            folders=frozenset(self._found.folders),
            skipped=frozenset(self._found.skipped),
        )

    def import_stream(self) -> Iterator[bytes]:
        """The blobs that are new, and a commit if the state is another one."""
        stored = {object_id for _, object_id in self._head.files.values()}
        for path in self._unread:
            mode = self._found.files[path].mode
            content = self._read(path, mode)
            if content is None:
                continue
            object_id = _blob_id(content)
            self._files[path] = (mode, object_id)
            if object_id not in stored:
                stored.add(object_id)
                yield b"blob\ndata %d\n%b\n" % (len(content), content)
        state = self.state()
        if not self._head.commit or not state.equals(self._head):
            yield from _commit_stream(state, parent=self._head.commit, ref=REF)
        yield b"done\n"

    def _read(self, path: bytes, mode: Mode) -> bytes | None:
        self.files_read += 1
        limit = conf().snapshot_max_file_bytes
        try:
            content = self._tree.read(path, mode, max_bytes=limit)
        except PermissionError:
            content = None
        except OSError:
            return None  # gone since it was found
        if content is None:
            self._found.skipped.add(path)
        return content


@contextmanager
def _noting(kept: list[bytes], path: bytes) -> Iterator[None]:
    try:
        yield
    except OSError:
        kept.append(path)


def _trees(*commits: str) -> list[str]:
    return [_checked(commit) if commit else EMPTY_TREE for commit in commits]


def _checked(commit: str) -> str:
    if not _COMMIT_ID.fullmatch(commit):
        raise WorkspaceError("There is no such snapshot.")
    return commit


def _blob_id(content: bytes) -> str:
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def _commit_stream(state: State, *, parent: str, ref: str) -> Iterator[bytes]:
    left = {
        "folders": [os.fsdecode(path) for path in sorted(state.folders)],
        "skipped": [os.fsdecode(path) for path in sorted(state.skipped)],
    }
    message = f"snapshot\n{json.dumps(left)}".encode()
    yield b"commit %b\ncommitter OpenSwarm <agent@openswarm.invalid> %d +0000\n" % (
        ref.encode(),
        int(time.time()),
    )
    yield b"data %d\n%b\n" % (len(message), message)
    if parent:
        yield b"from %b\n" % parent.encode()
    yield b"deleteall\n"
    for path, (mode, object_id) in state.files.items():
        yield b"M %b %b %b\n" % (mode.encode(), object_id.encode(), _quoted(path))


def _quoted(path: bytes) -> bytes:
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"%b"' % escaped


def _next_object(output: IO[bytes]) -> bytes:
    """Raises: WorkspaceError when the object is missing or git has ended."""
    header = output.readline().split()
    if len(header) != 3:
        raise WorkspaceError("The recorded files are damaged.")
    content = output.read(int(header[2]))
    output.read(1)
    return content


def _values(facts: Facts) -> list[Any]:
    return [facts.mode, facts.size, facts.mtime_ns, facts.ctime_ns, facts.inode]
