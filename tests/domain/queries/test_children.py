"""What stands below a session, and what all of it cost together."""

from __future__ import annotations

import pytest

from agents.domain import invocation
from agents.domain.queries.children import load_family
from agents.domain.subagents import start_sub_agent
from agents.domain.usage import Usage, record_usage
from agents.models import CostEntry
from agents.models.sessions import ShareRight
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def tree(alice, run):
    """A session with a sub-agent that has one, and an invoked session with one."""
    source = factories.make_session(alice, "I am the source")
    first = start(run, "toolu_1", "a1")
    second = start(run, "toolu_2", "a2", parent_tool_use_id="toolu_1")
    invoked = invocation.invoke_agent(run.session_id, source.pk, "What now?")
    invoked_run = factories.start_turn(invoked)
    third = start(invoked_run, "toolu_3", "a3")
    for number, (its_run, agent_id) in enumerate(
        [(run, ""), (run, "a1"), (run, "a2"), (invoked_run, ""), (invoked_run, "a3")]
    ):
        spend(its_run, agent_id, 1000 * 2**number)
    for session in (run.session, first, second, invoked, third):
        session.refresh_from_db()
    return run.session, first, second, invoked, third


def start(run, tool_use_id, agent_id, **call):
    factories.call_tool(run, tool_use_id, "Agent", {"prompt": "Look"}, **call)
    return start_sub_agent(run, tool_use_id=tool_use_id, agent_id=agent_id)


def spend(run, agent_id, tokens):
    record_usage(
        session_id=run.session_id,
        provider_id=None,
        message_id=f"msg_{run.pk}_{agent_id}",
        model="claude-sonnet-5-5",
        usage=Usage(input_tokens=tokens),
        agent_id=agent_id,
    )


def spent(*agent_ids):
    entries = CostEntry.objects.filter(agent_id__in=agent_ids)
    return sum(entry.usd_micros or 0 for entry in entries)


def test_each_stands_behind_its_parent(tree, alice):
    session, first, second, invoked, third = tree

    family = load_family(session, alice)

    assert [(each.session, each.level) for each in family.children] == [
        (first, 1),
        (second, 2),
        (invoked, 1),
        (third, 2),
    ]


def test_costs_roll_up_and_count_once(tree, alice):
    session, first, second, invoked, third = tree
    everything = sum(entry.usd_micros or 0 for entry in CostEntry.objects.all())
    costs = {each: load_family(each, alice) for each in tree}

    assert costs[session].total.cost_usd_micros == everything
    main = CostEntry.objects.get(session=session, agent_id="").usd_micros
    assert costs[session].own.cost_usd_micros == main
    assert costs[first].own.cost_usd_micros == spent("a1")
    assert costs[first].total.cost_usd_micros == spent("a1", "a2")
    assert costs[second].total.cost_usd_micros == spent("a2")
    assert costs[invoked].total.cost_usd_micros == invoked.cost_usd_micros
    assert costs[invoked].own.cost_usd_micros == invoked.cost_usd_micros - spent("a3")
    assert costs[third].own.cost_usd_micros == spent("a3")


def test_a_price_that_is_unknown_somewhere_makes_the_total_a_lower_bound(tree, alice):
    session, *_, third = tree
    third.parent_session.cost_is_partial = True
    third.parent_session.save(update_fields=["cost_is_partial"])

    family = load_family(session, alice)

    assert family.total.cost_is_partial
    assert not family.own.cost_is_partial


def test_who_sees_the_session_sees_its_sub_agents_but_not_what_it_invoked(tree, bob):
    session, first, second, *_ = tree
    bob.shares.create(session=session, right=ShareRight.OPERATE)

    family = load_family(session, bob)

    assert [each.session for each in family.children] == [first, second]
    assert family.total.cost_usd_micros == session.cost_usd_micros


def test_what_invoked_sessions_ask_waits_here_too(tree, alice, bob):
    session, *_, invoked, third = tree
    run = invoked.runs.unfinished().get()
    own = factories.ask_approval(session.runs.get(), "toolu_own")
    asked = [
        factories.ask_approval(run, "toolu_a"),
        factories.ask_approval(run, "toolu_b", agent_id=third.agent_id),
    ]

    waiting = [card.approval for card in load_family(session, alice).waiting]

    assert waiting == asked
    assert own not in waiting
    bob.shares.create(session=session, right=ShareRight.OPERATE)
    assert load_family(session, bob).waiting == ()
