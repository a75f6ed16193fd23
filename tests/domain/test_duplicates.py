"""Copies of sessions: what goes with them, and what doesn't."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents.domain import branches
from agents.domain.duplicates import duplicate_session
from agents.domain.messages import send_message
from agents.errors import InvalidInputError, WorkspaceError
from agents.models import AgentSession, Provider, Run, User
from agents.models.providers import ProviderKind
from tests import factories


def texts(session: AgentSession) -> list[str]:
    return list(session.messages.order_by("seq").values_list("text", flat=True))


@pytest.fixture
def talk(run: Run, alice: User) -> AgentSession:
    """Count to three. / Three. / Count to five. / Five."""
    factories.say(run, "Three.")
    factories.end_turn(run)
    session = run.session
    send_message(session, author=alice, text="Count to five")
    second = factories.start_turn(session)
    factories.say(second, "Five.")
    factories.end_turn(second)
    session.refresh_from_db()
    return session


def test_a_copy_ends_with_the_chosen_message(talk, alice):
    answer = talk.messages.get(text="Three.")

    copy = duplicate_session(talk, alice, up_to=answer)

    assert texts(copy) == ["Count to three", "Three."]
    assert copy.name == f"{talk.name} (copy)"
    assert texts(talk) == ["Count to three", "Three.", "Count to five", "Five."]


def test_a_message_of_another_version_brings_that_version(talk, alice):
    answer = talk.messages.get(text="Five.")
    branches.edit_message(
        talk.messages.get(text="Count to five"), author=alice, text="Count to six"
    )
    talk.refresh_from_db()

    copy = duplicate_session(talk, alice, up_to=answer)

    assert texts(copy) == ["Count to three", "Three.", "Count to five", "Five."]


def test_what_waits_or_is_of_another_session_is_refused(talk, alice):
    send_message(talk, author=alice, text="Now")
    waiting = send_message(talk, author=alice, text="Later")
    other = factories.make_session(alice).messages.get()

    with pytest.raises(InvalidInputError, match="not delivered yet"):
        duplicate_session(talk, alice, up_to=waiting)
    with pytest.raises(InvalidInputError, match="not part of the session"):
        duplicate_session(talk, alice, up_to=other)
    assert AgentSession.objects.count() == 2


def test_files_are_copied_and_then_part(talk, alice):
    Path(talk.cwd, "a.txt").write_text("one")

    copy = duplicate_session(talk, alice)
    Path(copy.cwd, "a.txt").write_text("two")

    assert copy.cwd != talk.cwd
    assert Path(talk.cwd, "a.txt").read_text() == "one"


def test_files_that_cannot_be_copied_leave_nothing_behind(talk, alice):
    make_path_that_is_too_long(Path(talk.cwd))

    with pytest.raises(WorkspaceError, match="can't be copied"):
        duplicate_session(talk, alice)

    assert AgentSession.objects.count() == 1
    assert list(Path(talk.cwd).parent.iterdir()) == [Path(talk.cwd)]


def make_path_that_is_too_long(folder: Path) -> None:
    """As `cd` and `mkdir` in turn make it."""
    name = "long" * 50
    here = os.open(folder, os.O_DIRECTORY)
    for _ in range(30):
        os.mkdir(name, dir_fd=here)
        above, here = here, os.open(name, os.O_DIRECTORY, dir_fd=here)
        os.close(above)
    os.close(here)


def test_somebody_elses_key_does_not_go_with_the_copy(talk, alice, bob):
    own = Provider.objects.create(
        owner=alice, name="Mine", kind=ProviderKind.GATEWAY, base_url="http://[::1]"
    )
    AgentSession.objects.filter(pk=talk.pk).update(provider=own)
    talk.refresh_from_db()

    assert duplicate_session(talk, alice).provider == own
    assert duplicate_session(talk, bob).provider is None
