"""What turns and branches changed, and the line that says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.domain import branches, changes, snapshots
from agents.domain.messages import send_message
from agents.errors import LeaseLostError, WorkspaceError
from agents.models import AgentSession, Message, Run, User
from agents.models.messages import MessageRole
from tests.factories import end_turn, start_turn


def work(run: Run, **files: str | None) -> Message | None:
    """A turn that writes or removes files, recorded and noted as the engine does."""
    snapshots.prepare_files(run)
    for name, text in files.items():
        path = Path(run.session.cwd, name)
        path.write_text(text) if text is not None else path.unlink()
    snapshots.record_snapshot(run)
    line = changes.note_changes(run)
    end_turn(run)
    return line


def next_turn(session: AgentSession, user: User) -> Run:
    send_message(session, author=user, text="Go on")
    return start_turn(session)


def paths(files) -> list[str]:
    return [file.path for file in files]


def test_a_turn_ends_with_what_it_changed(session, run, alice):
    work(run, kept="1\n2\n", gone="1\n")

    line = work(next_turn(session, alice), kept="1\n3\n", gone=None, new="x\ny\n")

    assert line is not None
    assert line.role == MessageRole.SYSTEM
    assert line.text == "3 files changed"
    assert line.content == {"kind": "changes", "files": 3, "added": 3, "removed": 2}


def test_a_turn_that_changed_nothing_says_nothing(session, run):
    assert work(run) is None
    assert not session.messages.filter(role=MessageRole.SYSTEM).exists()


def test_a_turn_that_was_not_recorded_says_nothing(run):
    assert changes.note_changes(run) is None


def test_a_worker_that_lost_its_lease_notes_nothing(session, run):
    (Path(session.cwd) / "a").write_text("1")
    snapshots.record_snapshot(run)
    Run.objects.filter(pk=run.pk).update(fencing=run.fencing + 1)

    with pytest.raises(LeaseLostError):
        changes.note_changes(run)


def test_each_side_of_a_fork_has_its_own_changes(session, run, alice):
    work(run, shared="1\n")
    left = next_turn(session, alice)
    work(left, left="1\n")
    edited = branches.edit_message(
        left.trigger_message,
        author=alice,
        text="Another way",
        attachments={snapshots.RESTORE_FLAG: True},
    )
    work(start_turn(session), right="1\n")

    left_files = changes.diff_since(run.branch, left.trigger_message.seq)
    right_files = changes.diff_since(edited.branch, edited.seq)

    assert paths(left_files) == ["left"]
    assert paths(right_files) == ["right"]
    assert [line.text for line in changes.lines_of(run.branch)] == [
        "1 file changed",
        "1 file changed",
    ]
    (line,) = changes.lines_of(edited.branch)
    assert line.run is not None
    assert line.run.trigger_message == edited


def test_a_page_is_told_why_there_is_nothing(run):
    found = changes.look(lambda: changes.diff_of_run(run))

    assert found.files == []
    assert found.problem == "The files were not recorded."
    with pytest.raises(WorkspaceError):
        changes.diff_since(run.branch, 1)


def test_a_page_sums_up_and_says_when_it_is_cut(run):
    work(run, long="".join(f"{n}\n" for n in range(3000)), short="1\n")

    found = changes.look(lambda: changes.diff_of_run(run))

    assert (found.added, found.removed, found.are_cut) == (3001, 0, True)
