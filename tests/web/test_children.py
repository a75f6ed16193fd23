"""The pages of sub-agents, and what a session's page says of the sessions below it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.domain.subagents import start_sub_agent
from agents.models import AgentSession, Run, User
from agents.models.sessions import ShareRight
from tests import factories
from tests.dom import Node, parse

SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


@pytest.fixture
def child(run: Run) -> AgentSession:
    return start(run, 1)


def start(run: Run, number: int) -> AgentSession:
    call = f"toolu_{number}"
    tool_input = {"description": f"Count {number}", "prompt": "Please count the bees."}
    factories.call_tool(run, call, "Agent", tool_input)
    factories.call_tool(run, f"{call}_inner", parent_tool_use_id=call)
    return start_sub_agent(run, tool_use_id=call, agent_id=f"a{number}")


def page_of(client: Client, session: AgentSession) -> Node:
    response = client.get(f"/sessions/{session.pk}/")
    assert response.status_code == 200
    return parse(response.content.decode())


def test_a_sub_agents_page_shows_its_task_and_what_it_did(
    run: Run, child: AgentSession, alice: User, sign_in: SignIn
) -> None:
    factories.say(run, "On the main thread.")

    page = page_of(sign_in(alice), child)

    words = page.find(f"session-{child.pk}-items").words
    assert "Please count the bees." in words
    assert "ls -la" in words
    assert "On the main thread." not in words
    [link] = page.find_all("a", href=f"/sessions/{run.session_id}/")[:1]
    assert link.words
    assert f"Started by {run.session.name}" in page.words
    assert not page.has("composer")
    assert not page.has("session-settings")
    assert not page.has(f"session-{child.pk}-menu")
    assert "answers only the session that started it" in page.words


def test_a_sessions_page_leads_to_its_sub_agents(
    run: Run, child: AgentSession, alice: User, sign_in: SignIn
) -> None:
    page = page_of(sign_in(alice), run.session)

    link = page.find(f"session-{child.pk}-link")
    assert "Count 1" in link.words
    assert "Running" in link.words
    listed = page.find(f"session-{run.session_id}-children")
    assert [a.attributes["href"] for a in listed.find_all("a")] == [
        f"/sessions/{child.pk}/"
    ]


def test_sub_agents_stand_in_no_list(
    child: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)

    for name in ("session_list", "history"):
        assert f"/sessions/{child.pk}/" not in client.get(reverse(name)).text


def test_the_inbox_says_which_sub_agent_asks(
    run: Run, child: AgentSession, alice: User, sign_in: SignIn
) -> None:
    by_child = factories.ask_approval(run, "toolu_1_inner", agent_id="a1")
    by_session = factories.ask_approval(run, "toolu_own")

    page = parse(sign_in(alice).get(reverse("approval_list")).text)

    for approval, links in (
        (by_child, [run.session_id, child.pk]),
        (by_session, [run.session_id]),
    ):
        card = page.find(f"approval-{approval.pk}")
        [line] = card.find_all("p", **{"class": "approval-card__session"})
        assert [link.attributes["href"] for link in line.find_all("a")] == [
            f"/sessions/{session_id}/" for session_id in links
        ]


ACTIONS = [
    *("session_stop", "session_retry", "session_continue", "session_rename"),
    *("session_settings", "session_close", "session_resume", "session_pin"),
    *("session_delete", "session_duplicate", "message_send", "queue_resume"),
]


@pytest.mark.parametrize("name", ACTIONS)
def test_nothing_is_done_to_a_sub_agent_but_through_its_session(
    name: str, child: AgentSession, alice: User, bob: User, sign_in: SignIn
) -> None:
    url = reverse(name, args=[child.pk])
    data = {"name": "x", "text": "x", "pinned": "true", "security_mode": "deny"}

    own, foreign = (sign_in(user).post(url, data) for user in (alice, bob))

    assert own.status_code == 409
    assert "part of the session that started it" in own.text
    assert foreign.status_code == 404
    before = child.status
    child.refresh_from_db()
    assert (child.status, child.closed_at, child.pinned) == (before, None, False)


def test_who_may_look_at_the_session_may_look_at_its_sub_agents(
    run: Run, child: AgentSession, bob: User, charlie: User, sign_in: SignIn
) -> None:
    bob.shares.create(session=run.session, right=ShareRight.VIEW)

    assert sign_in(bob).get(f"/sessions/{child.pk}/").status_code == 200
    assert sign_in(charlie).get(f"/sessions/{child.pk}/").status_code == 404


def test_a_page_takes_the_same_queries_with_more_sub_agents(
    run: Run, child: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    page_of(client, run.session)
    counts = []
    for number in (2, 3, 4):
        with CaptureQueriesContext(connection) as captured:
            page_of(client, run.session)
        counts.append(len(captured))
        start(run, number)

    assert len(set(counts)) == 1
