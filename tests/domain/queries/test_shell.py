"""The rail: whose sessions, in which group, in how many queries."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.domain import sessions
from agents.domain.queries.shell import RAIL_SESSIONS, rail, rail_fingerprint
from agents.models import AgentSession, Run, Share, User
from tests import factories

pytestmark = pytest.mark.django_db


def test_each_session_stands_in_one_group(alice: User) -> None:
    made = {name: factories.make_session(alice, name) for name in ("a", "b", "c", "d")}
    for name in ("b", "c", "d"):
        factories.end_turn(factories.start_turn(made[name]))
    sessions.update_session(made["c"], alice, pinned=True)
    sessions.close_session(made["d"], alice)

    shown = rail(alice)

    assert [entry.name for entry in shown.running] == ["a"]
    assert [entry.name for entry in shown.recent] == ["b"]
    assert [entry.name for entry in shown.pinned] == ["c"]


def test_it_shows_what_is_shared_and_hides_the_rest(
    run: Run, bob: User, charlie: User
) -> None:
    Share.objects.create(session=run.session, user=bob)

    assert [entry.id for entry in rail(bob).running] == [run.session_id]
    assert rail(charlie).running == []


def test_it_counts_what_the_person_may_answer(run: Run, alice: User, bob: User) -> None:
    Share.objects.create(session=run.session, user=bob)
    factories.ask_approval(run)

    assert rail(alice).pending_count == 1
    assert rail(bob).pending_count == 0


def test_an_unknown_cost_is_none(session: AgentSession, alice: User) -> None:
    assert rail(alice).running[0].cost_usd_micros == 0

    AgentSession.objects.filter(pk=session.pk).update(cost_is_partial=True)

    assert rail(alice).running[0].cost_usd_micros is None


@pytest.mark.parametrize("count", [1, 3, 20])
def test_it_takes_four_queries(alice: User, count: int) -> None:
    for _ in range(count):
        factories.end_turn(factories.start_turn(factories.make_session(alice)))

    with CaptureQueriesContext(connection) as captured:
        shown = rail(alice)

    assert len(captured) == 4
    assert len(shown.recent) == min(count, RAIL_SESSIONS)


def test_the_fingerprint_changes_with_what_a_page_may_show(
    run: Run, alice: User, charlie: User
) -> None:
    seen = [rail_fingerprint(alice)]

    factories.say(run, "Hello")
    seen.append(rail_fingerprint(alice))
    factories.ask_approval(run)
    seen.append(rail_fingerprint(alice))
    factories.make_session(alice)
    seen.append(rail_fingerprint(alice))
    run.session.delete()
    seen.append(rail_fingerprint(alice))

    assert len(set(seen)) == len(seen)
    assert rail_fingerprint(charlie) == (0, 0, 0)
