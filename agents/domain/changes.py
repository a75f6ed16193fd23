"""Changes: what turns and branches did to the files, and the line that says so.

The functions here run git for as long as `conf` allows, so none may be called inside a
transaction. Who may see the session is asked by the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from agents.errors import WorkspaceError
from agents.models import Message, MessageBranch, Run
from agents.models.messages import MessageRole
from agents.rendering.diffs import FileDiff, parse_patch
from agents.workspaces import snapshots
from agents.workspaces.snapshots import Counts

from . import notices
from .queries.items import CHANGES
from .snapshots import latest

NOT_RECORDED = "The files were not recorded."
MAX_TURNS = 100
_NEVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Span:
    """Two recorded states of a session's files; "" is before there was anything."""

    session_id: UUID
    start: str
    end: str

    def diff(self) -> list[FileDiff]:
        """Raises: WorkspaceError when a state isn't there any more."""
        if self.start == self.end:
            return []
        return parse_patch(snapshots.patch(self.session_id, self.start, self.end))

    def counts(self) -> Counts:
        """Raises: WorkspaceError when a state isn't there any more."""
        if self.start == self.end:
            return Counts(0, 0, 0)
        return snapshots.counts(self.session_id, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a page shows: files, or the sentence why there are none to show."""

    files: list[FileDiff]
    problem: str = ""

    @property
    def added(self) -> int:
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        return sum(file.removed for file in self.files)

    @property
    def are_cut(self) -> bool:
        return any(file.truncated for file in self.files)


def look(find: Callable[[], list[FileDiff]]) -> Changes:
    """What `find` finds, for a page that says why where it finds nothing."""
    try:
        return Changes(find())
    except WorkspaceError as error:
        return Changes([], error.user_message)


def diff_of_run(run: Run) -> list[FileDiff]:
    """What changed in the folder during the turn.

    Raises: WorkspaceError when it was not recorded.
    """
    return _span_of_run(run).diff()


def diff_of_branch(branch: MessageBranch) -> list[FileDiff]:
    """What changed in the folder over the branch's own turns.

    Raises: WorkspaceError when none of them was recorded.
    """
    rows = list(branch.snapshots.order_by("created_at"))
    if not rows:
        raise WorkspaceError(NOT_RECORDED)
    first = rows[0]
    start = first.parent_commit if first.run_id else first.commit
    return Span(branch.session_id, start, rows[-1].commit).diff()


def diff_since(branch: MessageBranch, seq: int) -> list[FileDiff]:
    """What changed on the branch's line from its message `seq` on.

    Raises: WorkspaceError when it was not recorded.
    """
    before, now = latest(branch, before_seq=seq), latest(branch, before_seq=_NEVER)
    if before is None or now is None:
        raise WorkspaceError(NOT_RECORDED)
    return Span(branch.session_id, before.commit, now.commit).diff()


def _span_of_run(run: Run) -> Span:
    rows = list(run.snapshots.order_by("created_at"))  # several where it was parked
    if not rows:
        raise WorkspaceError(NOT_RECORDED)
    return Span(run.session_id, rows[0].parent_commit, rows[-1].commit)


def note_changes(run: Run) -> Message | None:
    """When a turn ends: a line that says how many files it changed, if it did.

    Raises: LeaseLostError, WorkspaceError.
    """
    if not run.snapshots.exists():
        return None  # a notice says why
    counts = _span_of_run(run).counts()
    if not counts.files:
        return None
    return notices.add_notice(
        run,
        CHANGES,
        f"{_files(counts.files)} changed",
        files=counts.files,
        added=counts.added,
        removed=counts.removed,
    )


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def lines_of(branch: MessageBranch) -> list[Message]:
    """What the branch's own turns changed, newest first, with their prompts."""
    lines = branch.messages.filter(
        role=MessageRole.SYSTEM, content__kind=CHANGES, run__isnull=False
    )
    prompts = lines.select_related("run__trigger_message")
    return list(prompts.order_by("-seq")[:MAX_TURNS])
