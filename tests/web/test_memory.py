"""Settings → Memory: seeing, adding, finding, changing and deleting facts."""

from __future__ import annotations

import pytest
from django.test import Client

from agents.domain.memory import save_memory
from agents.models import AgentSession, Memory, User
from tests.dom import parse
from tests.people import browser

pytestmark = pytest.mark.django_db
URL = "/settings/memory/"


@pytest.fixture
def client(alice: User) -> Client:
    return browser(alice)


def rows(client: Client, url: str = URL) -> list[str]:
    return [row.words for row in parse(client.get(url).text).find_all("tr")[1:]]


def test_facts_are_added_and_listed_with_their_source(
    client: Client, alice: User, session: AgentSession
) -> None:
    save_memory(alice, "Likes thyme", source_session=session)

    client.post(URL, {"text": "Likes <b>heather</b>"})

    first, second = rows(client)
    assert first.startswith("Likes <b>heather</b> you")
    assert second.startswith(f"Likes thyme {session.name}")


def test_facts_of_others_are_not_there(client: Client, bob: User) -> None:
    save_memory(bob, "Bob's")

    assert rows(client) == []


def test_a_search_leaves_what_it_finds(client: Client, alice: User) -> None:
    save_memory(alice, "Likes thyme")
    save_memory(alice, "Likes heather")

    [row] = rows(client, f"{URL}?q=thyme")

    assert row.startswith("Likes thyme")
    assert "No fact has all these words." in client.get(f"{URL}?q=bees").text


def test_one_fact_too_many_is_refused_where_it_was_typed(
    client: Client, alice: User, override_conf
) -> None:
    override_conf(memory_facts=1)
    save_memory(alice, "one")

    answer = client.post(URL, {"text": "two"})

    assert answer.status_code == 422
    assert "1 facts are kept already." in answer.text
    assert ">\ntwo</textarea>" in answer.text


def test_a_fact_is_changed_and_deleted(client: Client, alice: User) -> None:
    fact = save_memory(alice, "one")

    client.post(f"{URL}{fact.pk}/", {"text": "two"})
    fact.refresh_from_db()
    assert fact.text == "two"

    client.post(f"{URL}{fact.pk}/delete/")
    assert not Memory.objects.exists()
