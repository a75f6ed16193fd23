"""A session's files by turn: what changed, and back to before a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.domain import branches, changes, runs, snapshots
from agents.domain.messages import send_message
from agents.errors import LeaseLostError, RunActiveError, WorkspaceError
from agents.models import AgentSession, AuditEntry, Message, Run, Snapshot, User
from agents.models.messages import MessageRole
from agents.models.runs import RunKind
from agents.rendering.diffs import FileDiff
from tests.factories import end_turn, say, start_turn


def work(run: Run, name: str, text: str) -> None:
    """A turn that writes one file, recorded as the engine does."""
    snapshots.prepare_files(run)
    say(run, f"I write {name}.")
    (Path(run.session.cwd) / name).write_text(text)
    snapshots.record_snapshot(run)
    end_turn(run)


def next_turn(session: AgentSession, user: User, text: str = "Go on") -> Run:
    send_message(session, author=user, text=text)
    return start_turn(session)


def listed(files: list[FileDiff]) -> list[tuple[str, str]]:
    return [(file.path, file.status) for file in files]


def names(session: AgentSession) -> list[str]:
    return sorted(path.name for path in Path(session.cwd).iterdir())


def notices(session: AgentSession) -> list[str]:
    rows = session.messages.filter(role=MessageRole.SYSTEM)
    return list(rows.values_list("text", flat=True))


@pytest.fixture
def two_turns(session: AgentSession, run: Run, alice: User) -> tuple[Run, Run]:
    work(run, "one.txt", "1\n")
    second = next_turn(session, alice)
    work(second, "two.txt", "2\n")
    return run, second


def test_each_turn_has_its_own_changes(two_turns):
    first, second = two_turns

    assert listed(changes.diff_of_run(first)) == [("one.txt", "added")]
    assert listed(changes.diff_of_run(second)) == [("two.txt", "added")]


def test_what_a_person_changed_between_turns_is_not_the_turns(session, run, alice):
    work(run, "one.txt", "1\n")
    (Path(session.cwd) / "one.txt").write_text("by hand\n")
    second = next_turn(session, alice)
    work(second, "two.txt", "2\n")

    assert listed(changes.diff_of_run(second)) == [("two.txt", "added")]
    snapshots.restore_before(second.trigger_message, alice)
    assert (Path(session.cwd) / "one.txt").read_text() == "by hand\n"


def test_a_turn_that_changed_nothing_says_so(session, run):
    snapshots.prepare_files(run)
    snapshots.record_snapshot(run)

    assert changes.diff_of_run(run) == []


def test_a_turn_without_a_record_says_that(run):
    with pytest.raises(WorkspaceError, match="not recorded"):
        changes.diff_of_run(run)


def test_going_back_before_a_message(session, two_turns, alice):
    first, second = two_turns

    restored = snapshots.restore_before(second.trigger_message, alice)

    assert (restored.files_changed, restored.kept) == (1, [])
    assert names(session) == ["one.txt"]
    snapshots.restore_before(first.trigger_message, alice)
    assert names(session) == []


def test_going_back_is_audited_with_what_it_takes_to_undo_it(session, two_turns, alice):
    snapshots.restore_before(two_turns[1].trigger_message, alice)

    entry = AuditEntry.objects.get(action="files.restored")
    newest = session.snapshots.order_by("created_at").last()
    assert (entry.actor, entry.target_id) == (alice, str(session.pk))
    assert entry.data["before"] == newest.commit
    assert entry.data["message"] == str(two_turns[1].trigger_message_id)


def test_a_preview_lists_what_would_change(session, two_turns):
    preview = snapshots.preview_restore_before(two_turns[0].trigger_message)

    assert listed(preview) == [("one.txt", "deleted"), ("two.txt", "deleted")]
    assert names(session) == ["one.txt", "two.txt"]


def test_nothing_is_put_back_under_an_agent_at_work(session, two_turns, alice):
    next_turn(session, alice)

    with pytest.raises(RunActiveError):
        snapshots.restore_before(two_turns[1].trigger_message, alice)
    assert names(session) == ["one.txt", "two.txt"]


def test_each_branch_goes_back_along_its_own_line(session, two_turns, alice):
    first, second = two_turns
    edited = branches.edit_message(
        second.trigger_message,
        author=alice,
        text="Another way",
        attachments={snapshots.RESTORE_FLAG: True},
    )
    third = start_turn(session)
    work(third, "three.txt", "3\n")

    assert names(session) == ["one.txt", "three.txt"]
    assert listed(changes.diff_of_branch(third.branch)) == [("three.txt", "added")]
    assert listed(changes.diff_of_branch(first.branch)) == [
        ("one.txt", "added"),
        ("two.txt", "added"),
    ]
    for message in (edited, second.trigger_message):
        snapshots.restore_before(message, alice)
        assert names(session) == ["one.txt"]


def test_an_edit_that_does_not_ask_leaves_the_files(session, two_turns, alice):
    edited = branches.edit_message(
        two_turns[0].trigger_message, author=alice, text="Another way"
    )
    third = start_turn(session)
    work(third, "three.txt", "3\n")

    assert names(session) == ["one.txt", "three.txt", "two.txt"]
    assert listed(changes.diff_of_run(third)) == [("three.txt", "added")]
    snapshots.restore_before(edited, alice)
    assert names(session) == ["one.txt", "two.txt"]


def test_files_are_put_back_once_even_when_the_message_is_edited_again(
    session, two_turns, alice
):
    edited = branches.edit_message(
        two_turns[1].trigger_message,
        author=alice,
        text="Another way",
        attachments={"context_paths": ["x"], snapshots.RESTORE_FLAG: True},
    )
    work(start_turn(session), "three.txt", "3\n")

    edited.refresh_from_db()
    assert edited.attachments == {"context_paths": ["x"]}


def test_a_retry_goes_back_to_before_the_first_try(session, run, alice):
    snapshots.prepare_files(run)
    say(run, "I write and fail.")
    (Path(session.cwd) / "half.txt").write_text("x")
    snapshots.record_snapshot(run)
    end_turn(run, stop_reason="error", error_class="x", error_text="It failed.")
    retried = runs.retry_last_run(session)
    assert retried.kind == RunKind.RETRY
    second = start_turn(session)
    (Path(session.cwd) / "by-hand.txt").write_text("x")
    work(second, "one.txt", "1\n")

    assert listed(changes.diff_of_run(second)) == [("one.txt", "added")]
    snapshots.restore_before(run.trigger_message, alice)
    assert names(session) == []


def test_a_folder_that_cannot_be_recorded_is_told_once(
    session, run, alice, override_conf
):
    override_conf(snapshot_max_files=0)
    (Path(session.cwd) / "a").touch()

    snapshots.prepare_files(run)
    snapshots.record_snapshot(run)
    end_turn(run)
    snapshots.prepare_files(next_turn(session, alice))

    sentence = "The files were not recorded: The folder holds more than 0 files."
    assert notices(session) == [sentence]
    assert not Snapshot.objects.exists()


def test_files_that_were_not_recorded_cannot_be_put_back(session, run, alice):
    work(run, "one.txt", "1\n")
    Snapshot.objects.all().delete()

    with pytest.raises(WorkspaceError, match="not recorded"):
        snapshots.restore_before(run.trigger_message, alice)
    assert names(session) == ["one.txt"]


def test_an_asked_restore_that_fails_is_told_and_the_turn_goes_on(
    session, two_turns, alice
):
    Snapshot.objects.all().delete()
    branches.edit_message(
        two_turns[1].trigger_message,
        author=alice,
        text="Another way",
        attachments={snapshots.RESTORE_FLAG: True},
    )
    work(start_turn(session), "three.txt", "3\n")

    [sentence] = notices(session)
    assert sentence.startswith("The files were not restored:")
    assert names(session) == ["one.txt", "three.txt", "two.txt"]


def test_a_missing_folder_is_left_to_the_turn_to_report(session, run):
    Path(session.cwd).rmdir()

    assert snapshots.record_snapshot(run) is None
    assert notices(session) == []


def test_a_worker_that_lost_its_lease_stores_nothing(session, run):
    Run.objects.filter(pk=run.pk).update(fencing=run.fencing + 1)

    with pytest.raises(LeaseLostError):
        snapshots.record_snapshot(run)
    assert not Snapshot.objects.exists()


def test_a_stranger_sees_no_snapshot(session, two_turns, alice, charlie):
    assert Snapshot.objects.visible_to(alice).exists()
    assert not Snapshot.objects.visible_to(charlie).exists()
    assert Message.objects.visible_to(alice).exists()


def test_a_look_during_a_turn_takes_nothing_from_what_the_turn_changed(
    session, two_turns, alice
):
    third = next_turn(session, alice)
    snapshots.prepare_files(third)
    (Path(session.cwd) / "early.txt").write_text("1\n")
    snapshots.preview_restore_before(two_turns[0].trigger_message)
    (Path(session.cwd) / "late.txt").write_text("2\n")
    snapshots.record_snapshot(third)

    assert listed(changes.diff_of_run(third)) == [
        ("early.txt", "added"),
        ("late.txt", "added"),
    ]


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ([], "The files were already as they were before this message."),
        (["a"], "1 file is again as it was before this message."),
        (["a", "b"], "2 files are again as they were before this message."),
    ],
)
def test_the_transcript_says_what_was_put_back(session, run, alice, written, sentence):
    snapshots.prepare_files(run)
    for name in written:
        (Path(session.cwd) / name).write_text("x")
    snapshots.record_snapshot(run)
    end_turn(run)
    branches.edit_message(
        run.trigger_message,
        author=alice,
        text="Another way",
        attachments={snapshots.RESTORE_FLAG: True},
    )

    snapshots.prepare_files(start_turn(session))

    [note] = session.messages.filter(role=MessageRole.SYSTEM)
    assert (note.content["title"], note.text) == ("Files restored", sentence)
    assert names(session) == []
