from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents.domain import sessions
from agents.domain.accounts import preferences_of
from agents.domain.lifecycle import close_session
from agents.domain.messages import send_message
from agents.domain.sessions import LaunchConfig, launch_agent
from agents.errors import InvalidInputError, NotAllowedError
from agents.models import (
    AgentSession,
    AuditEntry,
    ListedFolder,
    Message,
    MessageBranch,
    Mode,
    Run,
    SessionEvent,
    User,
)
from agents.models.runs import RunState
from tests import factories
from tests.dispatchers import BrokenQueueError
from tests.threads import at_once


def test_a_launch_writes_session_branch_message_and_run(
    alice: User, enqueued: list[UUID]
) -> None:
    session = launch_agent(alice, LaunchConfig(task="  Count to three \r\nplease "))

    message, run = session.messages.get(), session.runs.get()
    assert session.name == "Count to three please"
    assert session.status == "queued"
    assert session.active_branch == session.branches.get()
    assert (message.text, message.author) == ("Count to three \nplease", alice)
    assert message.queued_at is None
    assert (run.state, run.trigger_message) == (RunState.QUEUED, message)
    assert enqueued == [run.pk]
    assert Path(session.cwd).is_dir()
    assert session.owns_cwd


def test_a_failing_queue_leaves_nothing_behind(alice: User, settings: Any) -> None:
    settings.DISPATCHER = "tests.dispatchers.BrokenDispatcher"

    with pytest.raises(BrokenQueueError):
        launch_agent(alice, LaunchConfig(task="Count"))

    for model in (AgentSession, MessageBranch, Message, Run, SessionEvent):
        assert model.objects.count() == 0


def test_a_form_sent_twice_starts_one_agent(alice: User) -> None:
    config = LaunchConfig(task="Count", client_message_id=uuid4())

    assert launch_agent(alice, config) == launch_agent(alice, config)
    assert alice.sessions.count() == 1


def test_changed_words_under_a_used_id_are_an_agent_of_their_own(alice: User) -> None:
    used = uuid4()
    launch_agent(alice, LaunchConfig(task="Count", client_message_id=used))

    launch_agent(alice, LaunchConfig(task="Sing", client_message_id=used))

    assert alice.sessions.count() == 2


def test_an_id_of_somebody_else_finds_nothing(alice: User, bob: User) -> None:
    config = LaunchConfig(task="Count", client_message_id=uuid4())

    assert launch_agent(alice, config) != launch_agent(bob, config)


@pytest.mark.django_db(transaction=True)
def test_a_form_sent_twice_at_once_starts_one_agent() -> None:
    alice = factories.make_user("alice")
    config = LaunchConfig(task="Count", client_message_id=uuid4())

    first, second = at_once(*[lambda: launch_agent(alice, config)] * 2)

    assert first == second == alice.sessions.get()


def test_viewers_start_nothing(db: None) -> None:
    viewer = factories.make_user("vera", role="viewer")

    with pytest.raises(NotAllowedError):
        launch_agent(viewer, LaunchConfig(task="Count"))


@pytest.mark.parametrize(
    ("field", "config"),
    [
        ("text", {"task": " \n"}),
        ("mode", {"mode": "nonsense"}),
        ("security_mode", {"security_mode": "nonsense"}),
        ("security_mode", {"security_mode": "full"}),
        ("effort", {"effort": "huge"}),
        ("network", {"network": "wide"}),
        ("max_steps", {"max_steps": -1}),
        ("model", {"model": "m" * 201}),
    ],
)
def test_a_wrong_choice_names_its_field(
    alice: User, field: str, config: dict[str, Any]
) -> None:
    alice.security_ceiling = "ask"
    alice.save()

    with pytest.raises(InvalidInputError) as refusal:
        launch_agent(alice, LaunchConfig(**{"task": "Count", **config}))

    assert refusal.value.field == field
    assert not AgentSession.objects.exists()


def test_a_session_starts_from_the_persons_preferences(alice: User) -> None:
    preferences = preferences_of(alice)
    preferences.default_mode = "plan"
    preferences.default_model = "claude-opus-x"
    preferences.default_effort = "max"
    preferences.default_security_mode = "sandbox"
    preferences.on_timeout = "deny"
    preferences.save()

    session = launch_agent(alice, LaunchConfig(task="Count"))

    assert session.mode == "plan"
    assert session.allowed_tools == Mode.objects.get(slug="plan").tools
    assert session.model == "claude-opus-x"
    assert session.effort == "max"
    assert session.security_mode == "sandbox"
    assert session.on_timeout == "deny"


def test_an_own_mode_comes_before_a_built_in_one_of_the_same_name(alice: User) -> None:
    own = Mode.objects.create(owner=alice, slug="ask", name="My ask", tools=["Read"])

    assert sessions.find_mode(alice, "ask") == own


def test_other_peoples_modes_are_not_found(alice: User, bob: User) -> None:
    Mode.objects.create(owner=bob, slug="bobs", name="Bob's")

    with pytest.raises(InvalidInputError):
        sessions.find_mode(alice, "bobs")


def test_a_listed_folder_is_used_and_not_owned(alice: User, tmp_path: Path) -> None:
    folder = ListedFolder.objects.create(name="Project", path=str(tmp_path))

    session = launch_agent(alice, LaunchConfig(task="Count", folder=folder))

    assert (session.cwd, session.owns_cwd) == (str(tmp_path), False)


def test_a_folder_that_is_gone_is_refused(alice: User, tmp_path: Path) -> None:
    folder = ListedFolder.objects.create(name="Gone", path=str(tmp_path / "gone"))

    with pytest.raises(InvalidInputError, match="does not exist any more") as refusal:
        launch_agent(alice, LaunchConfig(task="Count", folder=folder))

    assert refusal.value.field == "folder"


def test_renaming_cleans_the_name_and_tells(session: AgentSession) -> None:
    sessions.rename_session(session, "  New\x00 name ")

    assert AgentSession.objects.get().name == "New\ufffd name"
    event = session.events.get(type="agent:name_updated")
    assert event.data == {"name": "New\ufffd name"}


def test_an_empty_name_is_refused(session: AgentSession) -> None:
    with pytest.raises(InvalidInputError):
        sessions.rename_session(session, "   ")


def test_settings_change_and_say_who_chose_the_model(
    session: AgentSession, alice: User
) -> None:
    sessions.update_session(
        session, alice, model="claude-x\x00", effort="low", mode="ask", pinned=True
    )

    session.refresh_from_db()
    assert (session.model, session.effort) == ("claude-x\ufffd", "low")
    assert (session.model_set_by, session.pinned) == (alice, True)
    assert session.model_set_at is not None
    assert session.allowed_tools == Mode.objects.get(slug="ask").tools


def test_the_same_model_again_is_nobodys_choice(
    session: AgentSession, alice: User
) -> None:
    sessions.update_session(session, alice, model=session.model)

    session.refresh_from_db()
    assert session.model_set_by is None


def test_nobody_widens_a_session_past_their_own_ceiling(
    session: AgentSession, bob: User
) -> None:
    bob.security_ceiling = "sandbox"

    with pytest.raises(InvalidInputError):
        sessions.update_session(session, bob, security_mode="full")

    session.refresh_from_db()
    assert session.security_mode == "ask"


@pytest.mark.parametrize(
    ("field", "value"), [("effort", "huge"), ("network", "wide"), ("mode", "none")]
)
def test_a_wrong_setting_names_its_field(
    session: AgentSession, alice: User, field: str, value: str
) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        sessions.update_session(session, alice, **{field: value})

    assert refusal.value.field == field


def test_closing_stops_what_waits_and_is_audited(
    session: AgentSession, alice: User
) -> None:
    close_session(session, alice)

    session.refresh_from_db()
    assert session.closed_at is not None
    assert session.status == "stopped"
    assert not session.runs.unfinished().exists()
    assert AuditEntry.objects.get(action="session.closed").actor == alice
    assert session.events.filter(type="agent:closed").count() == 1


def test_closing_again_keeps_the_first_time(session: AgentSession, alice: User) -> None:
    close_session(session, alice)
    closed_at = session.closed_at

    close_session(session, alice)

    session.refresh_from_db()
    assert session.closed_at == closed_at


def test_a_turn_that_ends_after_closing_delivers_nothing(run: Run, alice: User) -> None:
    send_message(run.session, author=alice, text="And then?")
    close_session(run.session, alice)

    factories.end_turn(run)

    assert not run.session.runs.unfinished().exists()
    assert run.session.messages.queued().count() == 1
