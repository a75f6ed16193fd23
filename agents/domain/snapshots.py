"""Snapshots: the files of a session as they were around each turn, and going back.

The state is recorded before a turn (so a person's own changes count too) and after
it. A folder that can't be recorded never fails a turn: a notice says so, once.

The functions here run git and read folders for as long as `conf` allows, so none may
be called inside a transaction. Who may see the session is asked by the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.db import transaction
from django.db.models import Q

from agents.errors import RunActiveError, SessionGoneError, WorkspaceError
from agents.models import AgentSession, Message, MessageBranch, Run, Snapshot, User
from agents.models.messages import MessageRole
from agents.models.runs import RunKind
from agents.rendering.diffs import FileDiff, parse_patch
from agents.workspaces import snapshots
from agents.workspaces.snapshots import Taken

from . import audit, notices
from .locks import lock_run
from .queries.branches import lineage

RESTORE_FLAG = "restore_files"
"""In a message's attachments: its turn begins with the files as they were then."""


@dataclass(frozen=True, slots=True)
class RestoredFiles:
    files_changed: int
    kept: list[str]
    """What could not be put back, and was left as it is."""


def prepare_files(run: Run) -> None:
    """Before a turn: put files back where its message asks so, then record them.

    Raises: LeaseLostError.
    """
    if restores_files(run):
        _restore_as_asked(run)
    record_snapshot(run, is_before=True)


def restores_files(run: Run) -> bool:
    """Whether the run's message asks for the files as they were before it."""
    asks = run.trigger_message.attachments.get(RESTORE_FLAG)
    return run.kind == RunKind.PROMPT and bool(asks)


def _restore_as_asked(run: Run) -> None:
    message = run.trigger_message
    attachments = dict(message.attachments)
    del attachments[RESTORE_FLAG]  # asked for once, also when it is edited again
    message.attachments = attachments
    message.save(update_fields=["attachments", "updated_at"])
    try:
        restored = _restore(message, message.author)
    except (WorkspaceError, OSError) as error:
        _tell(run, f"The files were not restored: {_reason(error)}")
        return
    notices.add_notice(
        run, "info", _what_was_done(restored.files_changed), title="Files restored"
    )
    if restored.kept:
        _tell(run, f"Some files could not be restored: {', '.join(restored.kept)}")


def _what_was_done(files_changed: int) -> str:
    match files_changed:
        case 0:
            return "The files were already as they were before this message."
        case 1:
            return "1 file is again as it was before this message."
        case count:
            return f"{count} files are again as they were before this message."


def record_snapshot(run: Run, *, is_before: bool = False) -> Snapshot | None:
    """Record the files as they are now, before or after the turn of `run`.

    Returns: None when nothing new had to be stored before the turn, or when the
        files could not be recorded; then a notice says why.
    Raises: LeaseLostError.
    """
    session = AgentSession.objects.only("cwd").filter(pk=run.session_id).first()
    if session is None:
        raise SessionGoneError
    folder = Path(session.cwd)
    if not folder.is_dir():
        return None  # the turn itself ends with a card that says so
    try:
        taken = snapshots.take(folder, run.session_id)
    except (WorkspaceError, OSError) as error:
        _tell(run, f"The files were not recorded: {_reason(error)}")
        return None
    return _store(run, taken, is_before=is_before)


@transaction.atomic
def _store(run: Run, taken: Taken, *, is_before: bool) -> Snapshot | None:
    message_seq = lock_run(run).last_message_seq
    parent_commit = taken.parent
    if is_before:
        if run.kind == RunKind.PROMPT:  # a later try comes after what the first did
            message_seq = run.trigger_message.seq - 1
        known = latest(run.branch, before_seq=message_seq + 1)
        if known is not None and known.commit == taken.commit:
            return None
    elif (known := latest(run.branch, before_seq=message_seq + 1)) is not None:
        # A preview during the turn may have recorded a state that is half of it.
        parent_commit = known.commit
    return Snapshot.objects.create(
        session_id=run.session_id,
        branch_id=run.branch_id,
        run=None if is_before else run,
        message_seq=message_seq,
        commit=taken.commit,
        parent_commit=parent_commit,
        files_changed=taken.files_changed,
        skipped=taken.skipped,
    )


def snapshot_before(message: Message) -> Snapshot | None:
    """The files as they were when `message` was about to be answered.

    Looked for along the message's own line: what another branch did doesn't count.
    """
    return latest(message.branch, before_seq=message.seq)


def latest(branch: MessageBranch, *, before_seq: int) -> Snapshot | None:
    """The newest state on the branch's line of what came before `before_seq`."""
    shown = Q(pk__in=[])
    for stretch in lineage(branch.session_id, branch.pk):
        cut = before_seq if stretch.before_seq is None else stretch.before_seq
        shown |= Q(branch_id=stretch.branch_id, message_seq__lt=min(cut, before_seq))
    found = Snapshot.objects.filter(shown, session_id=branch.session_id)
    return found.order_by("-message_seq", "-created_at").first()


def preview_restore_before(message: Message) -> list[FileDiff]:
    """What `restore_before` would change now; for the warning before it.

    Raises: WorkspaceError, also when there is nothing to go back to.
    """
    commit = _found(message).commit
    try:
        patch = snapshots.preview_restore(_folder(message), message.session_id, commit)
    except OSError as error:
        raise WorkspaceError(f"The files can't be read: {_reason(error)}") from error
    return parse_patch(patch)


def restore_before(message: Message, actor: User) -> RestoredFiles:
    """Put the files back as they were before `message`; audited.

    The state until now is recorded first, so nothing is lost for good.

    Raises: RunActiveError while the agent works; WorkspaceError.
    """
    if message.session.runs.live().exists():
        raise RunActiveError("Stop the agent first: it is at work in these files.")
    try:
        return _restore(message, actor)
    except OSError as error:
        sentence = f"The files can't be restored: {_reason(error)}"
        raise WorkspaceError(sentence) from error


def _restore(message: Message, actor: User | None) -> RestoredFiles:
    snapshot = _found(message)
    restored = snapshots.restore(_folder(message), message.session_id, snapshot.commit)
    audit.record(
        "files.restored",
        actor=actor,
        target=message.session,
        message=str(message.pk),
        commit=snapshot.commit,
        before=restored.before.commit,
        files_changed=restored.after.files_changed,
        kept=restored.kept,
    )
    return RestoredFiles(restored.after.files_changed, restored.kept)


def _found(message: Message) -> Snapshot:
    snapshot = snapshot_before(message)
    if snapshot is None:
        raise WorkspaceError("The files from before this message were not recorded.")
    return snapshot


def _folder(message: Message) -> Path:
    return Path(message.session.cwd)


def _reason(error: WorkspaceError | OSError) -> str:
    if isinstance(error, WorkspaceError):
        return error.user_message
    return f"{error.strerror or error}."


def _tell(run: Run, sentence: str) -> None:
    """A notice, unless the last one about the files said the same.

    Raises: LeaseLostError.
    """
    told = Message.objects.filter(
        session_id=run.session_id, role=MessageRole.SYSTEM, content__about="files"
    )
    last = told.order_by("-seq").values_list("text", flat=True).first()
    if last != sentence:
        notices.add_notice(run, "info", sentence, about="files")
