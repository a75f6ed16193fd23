"""Closing, resuming, pinning and deleting sessions, with all below them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.db import transaction

from agents.domain import branches, lifecycle, messages, metadata, runs, sessions
from agents.domain.duplicates import duplicate_session
from agents.domain.status import refresh_status
from agents.errors import (
    LeaseLostError,
    NotAllowedError,
    SessionClosedError,
    SessionGoneError,
)
from agents.events import bus
from agents.models import (
    AgentSession,
    AuditEntry,
    CostEntry,
    MessageBranch,
    Run,
    Share,
    TranscriptEntry,
    User,
)
from agents.models.sessions import SessionKind, SessionStatus, ShareRight
from tests import factories

pytestmark = pytest.mark.django_db

SECRET = "the secret plan of alice"


def child_of(parent: AgentSession, **fields: Any) -> AgentSession:
    """A child session that is at work, as a tool of its parent starts one."""
    child = factories.make_session(parent.owner, "Help me")
    AgentSession.objects.filter(pk=child.pk).update(parent_session=parent, **fields)
    child.refresh_from_db()
    return child


def transcribe(branch: MessageBranch, text: str = "entry") -> TranscriptEntry:
    return TranscriptEntry.objects.create(
        project_key="somewhere",
        sdk_session_id=str(branch.sdk_session_id),
        uuid=str(uuid.uuid4()),
        type="user",
        entry=text,
    )


# Looking


def test_all_sessions_are_the_open_ones_one_may_see(
    alice: User, bob: User, charlie: User
) -> None:
    own, shared = factories.make_session(alice), factories.make_session(bob)
    Share.objects.create(session=shared, user=alice, right=ShareRight.VIEW)
    closed = factories.make_session(alice)
    sessions.close_session(closed, alice)

    assert set(sessions.get_all_sessions(alice)) == {own, shared}
    assert set(sessions.get_all_sessions(charlie)) == set()


def test_one_session_is_found_open_or_closed_by_who_may_see_it(
    session: AgentSession, alice: User, charlie: User
) -> None:
    sessions.close_session(session, alice)

    assert sessions.get_session(alice, session.pk) == session
    assert sessions.get_session(charlie, session.pk) is None
    assert sessions.get_session(alice, uuid.uuid4()) is None


def test_browser_agents_are_found_among_the_children(session: AgentSession) -> None:
    child_of(session, kind=SessionKind.SUB_AGENT)
    browser = child_of(session, kind=SessionKind.BROWSER_AGENT)

    assert list(sessions.get_browser_agent_children(session)) == [browser]


# Closing and resuming


def test_closing_takes_the_whole_tree_deepest_first(
    session: AgentSession, alice: User
) -> None:
    child = child_of(session)
    grandchild = child_of(child)

    assert lifecycle.tree_ids(session.pk) == [grandchild.pk, child.pk, session.pk]
    sessions.close_session(session, alice)

    for each in (session, child, grandchild):
        each.refresh_from_db()
        assert each.closed_at is not None
        assert not each.runs.unfinished().exists()
    closed = AuditEntry.objects.filter(action="session.closed").order_by("pk")
    assert [entry.target_id for entry in closed] == [
        str(grandchild.pk),
        str(child.pk),
        str(session.pk),
    ]


def test_a_live_run_is_asked_to_stop(run: Run, alice: User) -> None:
    sessions.close_session(run.session, alice)

    assert runs.is_stop_requested(run)
    factories.end_turn(run, stop_reason="cancelled")
    run.session.refresh_from_db()
    assert run.session.status == "stopped"
    assert run.session.closed_at is not None


def test_a_closed_session_is_only_read(run: Run, alice: User) -> None:
    messages.send_message(run.session, author=alice, text="And then?")
    waiting = run.session.messages.queued().get()
    factories.end_turn(run, stop_reason="error", error_class="auth")
    sessions.close_session(run.session, alice)
    first = run.trigger_message

    ways: list[Callable[[], object]] = [
        lambda: messages.send_message(run.session, author=alice, text="Hello?"),
        lambda: messages.send_now(waiting),
        lambda: runs.continue_session(run.session),
        lambda: runs.retry_last_run(run.session),
        lambda: branches.edit_message(first, author=alice, text="Count to four"),
    ]
    for way in ways:
        with pytest.raises(SessionClosedError), transaction.atomic():
            way()

    run.session.refresh_from_db()
    assert run.session.closed_at is not None
    assert not run.session.runs.unfinished().exists()
    assert run.session.branches.count() == 1


def test_the_form_that_was_sent_twice_finds_its_message_in_a_closed_session(
    session: AgentSession, alice: User
) -> None:
    message_id = uuid.uuid4()

    def send() -> object:
        return messages.send_message(
            session, author=alice, text="Once", client_message_id=message_id
        )

    sent = send()
    sessions.close_session(session, alice)

    assert send() == sent


def test_resuming_opens_it_as_stopped_and_starts_nothing(run: Run, alice: User) -> None:
    factories.end_turn(run)
    sessions.close_session(run.session, alice)

    assert sessions.resume_session(run.session, alice)

    session = AgentSession.objects.get(pk=run.session_id)
    assert (session.closed_at, session.status) == (None, "stopped")
    assert not session.runs.unfinished().exists()
    event = session.events.get(type="agent:resumed")
    assert event.data == {"status": "stopped"}
    messages.send_message(session, author=alice, text="Go on")
    assert session.runs.unfinished().count() == 1


def test_changing_a_setting_leaves_a_resumed_session_stopped(
    run: Run, alice: User
) -> None:
    factories.end_turn(run)
    sessions.close_session(run.session, alice)
    sessions.resume_session(run.session, alice)

    sessions.update_session(run.session, alice, effort="high")

    assert AgentSession.objects.get(pk=run.session_id).status == "stopped"


@pytest.mark.parametrize("stop_reason", ["no_tool_calls", "error"])
def test_a_resumed_session_stays_stopped_until_something_runs(
    run: Run, alice: User, stop_reason: str
) -> None:
    factories.end_turn(run, stop_reason=stop_reason)
    sessions.close_session(run.session, alice)
    sessions.resume_session(run.session, alice)

    assert refresh_status(run.session_id) == SessionStatus.STOPPED

    messages.send_message(run.session, author=alice, text="Go on")
    factories.end_turn(factories.start_turn(run.session))
    assert refresh_status(run.session_id) == SessionStatus.COMPLETED


def test_what_never_ran_is_stopped_too_when_it_is_resumed(alice: User) -> None:
    empty = duplicate_session(factories.make_session(alice), alice)
    assert empty.status == SessionStatus.IDLE
    sessions.close_session(empty, alice)

    sessions.resume_session(empty, alice)

    assert refresh_status(empty.pk) == SessionStatus.STOPPED


def test_resuming_what_is_open_changes_nothing(
    session: AgentSession, alice: User
) -> None:
    assert not sessions.resume_session(session, alice)

    assert not session.events.filter(type="agent:resumed").exists()


def test_pinning_tells_once(session: AgentSession) -> None:
    before = session.events.count()

    sessions.pin_session(session, pinned=True)
    sessions.pin_session(session, pinned=True)

    assert AgentSession.objects.get(pk=session.pk).pinned
    assert session.events.count() == before + 1


# Deleting


def test_only_the_owner_deletes(session: AgentSession, bob: User) -> None:
    Share.objects.create(session=session, user=bob, right=ShareRight.OPERATE)

    with pytest.raises(NotAllowedError):
        sessions.delete_session(session, bob)

    assert AgentSession.objects.filter(pk=session.pk).exists()


def test_no_row_tells_of_a_deleted_session(alice: User) -> None:
    session = factories.make_session(alice, SECRET)
    run = factories.start_turn(session)
    factories.ask_approval(run, "toolu_9", "Bash", {"command": SECRET})
    for number in range(3):
        factories.call_tool(run, f"toolu_{number}", "Bash", {"command": SECRET})
        factories.return_result(run, f"toolu_{number}", SECRET)
    first = session.messages.get(tool_use_id="toolu_0", role="tool_call")
    metadata.save_group_meta(session.pk, first.pk, name=SECRET)
    factories.say(run, SECRET)
    factories.end_turn(run)
    branches.edit_message(run.trigger_message, author=alice, text=f"{SECRET} again")
    for branch in session.branches.all():
        transcribe(branch, SECRET)
    child = child_of(session)
    sessions.close_session(session, alice)

    sessions.delete_session(session, alice)

    assert not AgentSession.objects.filter(pk__in=[session.pk, child.pk]).exists()
    for model in apps.get_app_config("agents").get_models():
        rows = [str(row) for row in model._default_manager.values()]
        assert not [row for row in rows if SECRET in row], model.__name__
        if model is not AuditEntry:
            assert not [row for row in rows if str(session.pk) in row], model.__name__


def test_what_it_cost_stays(run: Run, alice: User) -> None:
    from agents.domain.usage import Usage, record_usage

    record_usage(
        session_id=run.session_id,
        provider_id=None,
        message_id="msg_1",
        model="claude-haiku-4-5",
        usage=Usage(input_tokens=1000),
    )

    sessions.delete_session(run.session, alice)

    entry = CostEntry.objects.get()
    assert (entry.user, entry.session, entry.usd_micros) == (alice, None, 1000)


def test_the_audit_says_who_deleted_what(session: AgentSession, alice: User) -> None:
    conversation = str(session.branches.get().sdk_session_id)

    sessions.delete_session(session, alice)

    entry = AuditEntry.objects.get(action="session.deleted")
    assert (entry.actor, entry.target_id) == (alice, str(session.pk))
    assert lifecycle.deleted_among({session.pk, uuid.uuid4()}) == {
        session.pk: [conversation]
    }
    assert lifecycle.without_row({session.pk}) == {session.pk}


def test_whoever_still_works_for_it_has_lost_the_run(run: Run, alice: User) -> None:
    sessions.delete_session(run.session, alice)

    assert runs.is_stop_requested(run)
    with pytest.raises(LeaseLostError), transaction.atomic():
        factories.call_tool(run)
    with pytest.raises(LeaseLostError):
        factories.end_turn(run)
    with pytest.raises(LeaseLostError):
        runs.extend_lease(run)


def test_a_person_who_is_late_is_told(session: AgentSession, alice: User) -> None:
    late = AgentSession.objects.get(pk=session.pk)
    sessions.delete_session(session, alice)

    with pytest.raises(SessionGoneError, match="deleted"), transaction.atomic():
        messages.send_message(late, author=alice, text="Hello?")


def test_a_copy_that_has_not_begun_keeps_its_memory(alice: User) -> None:
    source = factories.make_session(alice)
    branch = source.branches.get()
    transcribe(branch)
    copy = factories.make_session(alice)
    copy.branches.update(sdk_fork_session_id=branch.sdk_session_id)

    sessions.delete_session(source, alice)
    assert TranscriptEntry.objects.count() == 1

    sessions.delete_session(copy, alice)
    assert TranscriptEntry.objects.count() == 0


def test_a_copy_that_has_begun_needs_the_source_no_more(alice: User) -> None:
    source = factories.make_session(alice)
    branch = source.branches.get()
    transcribe(branch)
    copy = factories.make_session(alice)
    copy.branches.update(sdk_fork_session_id=branch.sdk_session_id)
    own = transcribe(copy.branches.get())

    sessions.delete_session(source, alice)

    assert list(TranscriptEntry.objects.all()) == [own]


def test_everybody_who_sees_it_hears_of_the_end(
    session: AgentSession,
    alice: User,
    bob: User,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    Share.objects.create(session=session, user=bob, right=ShareRight.VIEW)
    rung: list[str] = []
    monkeypatch.setattr(bus, "ring", lambda group, message: rung.append(group))

    with django_capture_on_commit_callbacks(execute=True):
        sessions.delete_session(session, alice)

    for group in (
        bus.session_group(session.pk),
        bus.user_group(alice.pk),
        bus.user_group(bob.pk),
        bus.engine_group(),
    ):
        assert group in rung


# Stop and start-up


def test_a_worker_settles_what_it_could_not_end(run: Run) -> None:
    assert sessions.persist_all_sessions("another-worker") == 0
    assert sessions.persist_all_sessions("test-worker") == 1

    run.refresh_from_db()
    assert run.state == "finished"
    run.session.refresh_from_db()
    assert run.session.closed_at is None, "stopping the server closes nothing"


def test_a_start_settles_what_a_dead_server_left(run: Run) -> None:
    assert sessions.restore_all_sessions() == 1
    assert sessions.restore_all_sessions() == 0
