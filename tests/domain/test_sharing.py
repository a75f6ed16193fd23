"""Who else works in a folder, told without naming what one may not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.domain.lifecycle import close_session
from agents.domain.sharing import Sharing, sharing_in, sharing_of
from agents.models import AgentSession, ListedFolder, User
from tests.factories import make_session


@pytest.fixture
def folder(db: None, tmp_path: Path) -> ListedFolder:
    return ListedFolder.objects.create(name="Project", path=str(tmp_path))


def told(sharing: Sharing | None) -> tuple[list[str], int] | None:
    if sharing is None:
        return None
    return [session.name for session in sharing.named], sharing.unnamed


def test_only_what_a_person_may_see_is_named(alice, bob, charlie, folder):
    mine = make_session(alice, "Mine", folder=folder)
    make_session(alice, "Also mine", folder=folder)
    make_session(bob, "Secret", folder=folder)

    assert told(sharing_of(mine, alice)) == (["Also mine"], 1)
    assert told(sharing_of(mine, charlie)) == ([], 2)


def test_nobody_shares_a_workspace_of_ones_own_or_with_a_closed_session(alice, folder):
    alone = make_session(alice)
    make_session(alice)
    first, second = (make_session(alice, folder=folder) for _ in range(2))
    close_session(second, alice)
    second.refresh_from_db()

    assert [sharing_of(each, alice) for each in (alone, first, second)] == [None] * 3


def test_many_are_counted(alice, folder):
    mine = make_session(alice, folder=folder)
    for _ in range(5):
        make_session(alice, "Another", folder=folder)

    assert told(sharing_of(mine, alice)) == (["Another"] * 3, 2)


def test_folders_on_offer_say_who_works_there_in_two_queries(
    alice: User, bob: User, folder, tmp_path: Path, django_assert_num_queries
):
    inner = tmp_path / "inner"
    inner.mkdir()
    beside = tmp_path.with_name(f"{tmp_path.name}-2")
    beside.mkdir()
    within = ListedFolder.objects.create(name="Within", path=str(inner))
    quiet = ListedFolder.objects.create(name="Quiet", path=str(beside))
    make_session(alice, "Mine", folder=within)
    make_session(bob, "Secret", folder=folder)

    with django_assert_num_queries(2):
        found = sharing_in([folder, within, quiet], alice)

    assert [(each.name, told(sharing)) for each, sharing in found] == [
        ("Project", (["Mine"], 1)),
        ("Within", (["Mine"], 1)),
    ]
    assert AgentSession.objects.count() == 2
