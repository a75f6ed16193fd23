"""`manage.py seed_history`: a long history, the same each time, that pages bear."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Count
from django.test import Client
from django.urls import reverse

from agents.domain.history import get_history
from agents.domain.queries.branches import lineage
from agents.management.history_seed import NEEDLE_EVERY, needle
from agents.models import AgentSession, Message, MessageBranch, User
from agents.models.users import Role
from tests import factories


@pytest.fixture
def owner(db) -> User:
    return factories.make_user("olga", role=Role.OWNER)


def seed(sessions: int, messages: int, **options) -> str:
    said = StringIO()
    call_command(
        "seed_history", sessions=sessions, messages=messages, stdout=said, **options
    )
    return said.getvalue()


def test_it_makes_just_as_many_as_were_asked_for(owner):
    said = seed(30, 505)

    sizes = AgentSession.objects.annotate(size=Count("messages")).values_list("size")
    assert sorted({size for (size,) in sizes}) == [16, 17]
    assert Message.objects.count() == 505
    assert set(AgentSession.objects.values_list("owner", flat=True)) == {owner.pk}
    assert said == "30 sessions with 505 messages are made.\n"


def test_the_same_seed_makes_the_same_rows(owner):
    def rows() -> list:
        columns = ("pk", "branch_id", "seq", "role", "text", "content", "created_at")
        return list(Message.objects.order_by("session_id", "seq").values_list(*columns))

    seed(12, 200)
    first = rows()
    AgentSession.objects.all().delete()
    seed(12, 200)
    again = rows()
    AgentSession.objects.all().delete()
    seed(12, 200, seed=2)

    assert first == again
    assert rows() != first


@pytest.mark.django_db(transaction=True)
def test_the_same_seed_twice_says_what_to_do():
    factories.make_user("olga", role=Role.OWNER)
    seed(2, 10)

    with pytest.raises(CommandError, match="choose another --seed"):
        seed(2, 10)


def test_some_sessions_have_branches_that_hang_together(owner):
    seed(20, 20 * 20)

    fork = MessageBranch.objects.exclude(parent_branch=None).first()

    assert fork is not None
    assert MessageBranch.objects.exclude(parent_branch=None).count() == 2
    stretches = lineage(fork.session_id, fork.pk)
    assert [stretch.before_seq for stretch in stretches] == [None, 5]
    assert fork.messages.count() == 12


def test_every_needle_is_found_where_it_stands(owner):
    seed(20, 400)

    for number in range(NEEDLE_EVERY, 400, NEEDLE_EVERY):
        page = get_history(owner, needle(number))
        assert page.total == 1
        assert needle(number) in page.sessions[0].hits[0].snippet


def test_it_is_for_whom_it_says(owner):
    charlie = factories.make_user("charlie")

    seed(2, 4, user="charlie")

    assert [charlie.sessions.count(), owner.sessions.count()] == [2, 0]
    with pytest.raises(CommandError, match="nobody named 'zoe'"):
        seed(2, 4, user="zoe")


def test_without_an_owner_it_says_so(db):
    with pytest.raises(CommandError, match="no owner"):
        seed(2, 4)


@pytest.mark.parametrize("sessions", [40, 120])
def test_pages_take_the_same_queries_in_a_long_history(
    owner, sign_in, sessions, django_assert_max_num_queries
):
    seed(sessions, sessions * 20)
    client: Client = sign_in(owner)
    word = get_history(owner).sessions[0].session.last_preview.split()[0]
    pages = [
        (reverse("session_list"), 20),
        (reverse("history"), 20),
        (f"{reverse('history')}?q={word}", 22),
    ]

    for url, most in pages:
        client.get(url)
        with django_assert_max_num_queries(most):
            assert client.get(url).status_code == 200
