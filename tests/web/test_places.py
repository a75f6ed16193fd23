"""Links that lead to a message: its version, its page; looking changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from agents.domain import branches
from agents.domain.history import get_history
from agents.domain.messages import send_message
from agents.models import AgentSession, Message, Run, User
from tests import factories
from tests.dom import Node, parse

SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


@pytest.fixture
def talk(run: Run) -> AgentSession:
    factories.say(run, "Three, of course.")
    factories.end_turn(run)
    return run.session


def page_at(client: Client, session: AgentSession, query: str = "") -> Node:
    response = client.get(f"/sessions/{session.pk}/?{query}")
    assert response.status_code == 200
    return parse(response.content.decode())


def shown(page: Node) -> list[str]:
    [log] = page.find_all(role="log")
    return [article.id for article in log.find_all("article")]


def is_live(page: Node) -> bool:
    return "ws-connect" in page.find("main").attributes


def follow(client: Client, user: User, words: str) -> Node:
    """Through the first hit of the history's search."""
    [entry] = get_history(user, words).sessions
    return parse(client.get(entry.hits[0].url).content.decode())


def test_a_message_of_the_shown_version_is_shown_live(
    talk: AgentSession, alice: User, sign_in: SignIn
) -> None:
    page = follow(sign_in(alice), alice, "Three, of course")

    assert f"message-{talk.messages.latest('seq').pk}" in shown(page)
    assert is_live(page)
    assert page.has("composer")


def test_a_message_of_another_version_is_looked_at_and_nothing_changes(
    talk: AgentSession, alice: User, sign_in: SignIn
) -> None:
    answer = talk.messages.latest("seq")
    edited = branches.edit_message(
        talk.messages.earliest("seq"), author=alice, text="Count to four"
    )
    client = sign_in(alice)

    page = follow(client, alice, "Three, of course")

    assert f"message-{answer.pk}" in shown(page)
    assert f"message-{edited.pk}" not in shown(page)
    assert (is_live(page), page.has("composer")) == (False, False)
    assert "Another version of this conversation" in page.text
    talk.refresh_from_db()
    assert talk.active_branch_id == edited.branch_id


def test_one_press_switches_to_what_one_looks_at(
    talk: AgentSession, alice: User, sign_in: SignIn
) -> None:
    answer = talk.messages.latest("seq")
    branches.edit_message(
        talk.messages.earliest("seq"), author=alice, text="Count to four"
    )
    client = sign_in(alice)
    page = page_at(client, talk, f"branch={answer.branch_id}")
    forms = page.find_all("form", action=f"/branches/{answer.branch_id}/switch/")
    [switch] = [form for form in forms if "Switch to this version" in form.text]

    client.post(switch.attributes["action"])

    talk.refresh_from_db()
    assert talk.active_branch_id == answer.branch_id
    assert is_live(page_at(client, talk, f"branch={answer.branch_id}"))


def test_what_the_shown_version_shares_is_shown_there(
    talk: AgentSession, alice: User, sign_in: SignIn
) -> None:
    """The hit names the version that the message was said on, an ancestor here."""
    second = send_message(talk, author=alice, text="And on")
    factories.end_turn(factories.start_turn(talk))
    branches.edit_message(second, author=alice, text="Rather something else")

    page = follow(sign_in(alice), alice, "Three, of course")

    assert is_live(page)
    assert "Rather something else" in page.text


def test_a_message_far_up_brings_its_own_page(
    talk: AgentSession, run: Run, alice: User, sign_in: SignIn, override_conf
) -> None:
    override_conf(transcript_page_size=4)
    lines = [
        Message(
            session=talk,
            branch=run.branch,
            seq=10 + number,
            role="assistant",
            text=f"line {number}",
        )
        for number in range(12)
    ]
    Message.objects.bulk_create(lines)
    client = sign_in(alice)

    page = page_at(client, talk, f"message={lines[5].pk}")

    assert shown(page) == [f"message-{line.pk}" for line in lines[4:8]]
    assert not is_live(page)
    assert page.has("composer")
    assert is_live(page_at(client, talk, f"message={lines[10].pk}"))


def test_earlier_messages_of_another_version_stay_in_it(
    talk: AgentSession, run: Run, alice: User, sign_in: SignIn, override_conf
) -> None:
    override_conf(transcript_page_size=1)
    branches.edit_message(run.trigger_message, author=alice, text="Count to four")
    client = sign_in(alice)
    page = page_at(client, talk, f"branch={run.branch_id}")
    [older] = page.find(f"session-{talk.pk}-older").find_all("a")

    plain = client.get(older.attributes["href"])
    fragment = client.get(older.attributes["hx-get"], headers={"HX-Request": "true"})

    for answer in (plain, fragment):
        assert f"message-{run.trigger_message_id}" in answer.content.decode()
    assert "Another version of this conversation" in plain.content.decode()


def test_a_result_brings_the_page_of_its_call(
    run: Run, alice: User, sign_in: SignIn, override_conf
) -> None:
    override_conf(transcript_page_size=2)
    call = factories.call_tool(run)
    for number in range(5):
        factories.say(run, f"line {number}")
    result = factories.return_result(run, text="unmistakable")

    page = page_at(sign_in(alice), run.session, f"message={result.pk}")

    assert page.has(f"tool-{call.pk}")


@pytest.mark.parametrize("query", ["branch=x&message=y", "message=", "branch={other}"])
def test_what_leads_nowhere_shows_the_newest_page(
    query: str, talk: AgentSession, bob: User, alice: User, sign_in: SignIn
) -> None:
    other = factories.make_session(bob).active_branch_id

    page = page_at(sign_in(alice), talk, query.format(other=other))

    assert is_live(page)
