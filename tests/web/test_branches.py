"""Editing, answering anew, switching and comparing, as pages show it."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse

from agents.domain import branches
from agents.domain.queries.branches import load_navigators
from agents.models import AgentSession, Message, Run, Share, User
from agents.models.messages import MessageRole
from agents.models.sessions import ShareRight
from tests import factories

pytestmark = pytest.mark.django_db


def _talk(run: Run) -> Message:
    factories.say(run, "Three.")
    factories.end_turn(run, steps=1)
    return run.trigger_message


def test_an_edit_makes_a_branch_and_shows_the_session(
    client: Client, alice: User, run: Run
) -> None:
    message = _talk(run)
    client.force_login(alice)

    form = client.get(reverse("message_edit", args=[message.pk]))
    answer = client.post(
        reverse("message_edit", args=[message.pk]), {"text": "Count to four"}
    )

    assert message.text in form.content.decode()
    assert answer.status_code == 302
    session = AgentSession.objects.get(pk=run.session_id)
    assert session.active_branch is not None
    assert session.active_branch.parent_branch_id == run.branch_id
    texts = session.active_branch.messages.values_list("text", flat=True)
    assert list(texts) == ["Count to four"]


def test_an_empty_edit_keeps_the_form_and_says_why(
    client: Client, alice: User, run: Run
) -> None:
    message = _talk(run)
    client.force_login(alice)

    answer = client.post(
        reverse("message_edit", args=[message.pk]),
        {"text": "  "},
        headers={"HX-Request": "true"},
    )

    assert answer.status_code == 422
    assert "Write a message first." in answer.content.decode()
    assert run.session.branches.count() == 1


def test_what_another_version_asks_is_still_asked(
    client: Client, alice: User, run: Run
) -> None:
    edited = branches.edit_message(_talk(run), author=alice, text="Count to four")
    approval = factories.ask_approval(factories.start_turn(edited.session))
    client.force_login(alice)
    page = reverse("session_detail", args=[run.session_id])
    card = f'id="approval-{approval.pk}"'

    assert client.get(page).content.decode().count(card) == 1

    client.post(reverse("branch_switch", args=[run.branch_id]))
    shown = client.get(page).content.decode()

    assert "1 / 2" in shown
    assert f'href="#approval-{approval.pk}"' in shown
    assert shown.count(card) == 1


def test_the_navigator_leads_from_version_to_version(
    client: Client, alice: User, run: Run
) -> None:
    message = _talk(run)
    edited = branches.edit_message(message, author=alice, text="Count to four")
    client.force_login(alice)
    page = reverse("session_detail", args=[run.session_id])

    assert "2 / 2" in client.get(page).content.decode()

    client.post(reverse("branch_switch", args=[run.branch_id]))
    shown = client.get(page).content.decode()

    assert "1 / 2" in shown
    assert message.text in shown
    assert f"message-{edited.pk}" not in shown


def test_two_versions_stand_side_by_side(client: Client, alice: User, run: Run) -> None:
    message = _talk(run)
    edited = branches.edit_message(message, author=alice, text="Count to four")
    client.force_login(alice)

    address = reverse("branch_compare", args=[edited.branch_id])
    shown = client.get(f"{address}?{urlencode({'with': run.branch_id})}")

    text = shown.content.decode()
    assert shown.status_code == 200
    assert "Count to four" in text
    assert message.text in text
    assert client.get(address).status_code == 404


def test_an_answer_can_be_had_anew(client: Client, alice: User, run: Run) -> None:
    _talk(run)
    answer = run.session.messages.get(role=MessageRole.ASSISTANT)
    client.force_login(alice)

    client.post(reverse("message_regenerate", args=[answer.pk]))

    session = AgentSession.objects.get(pk=run.session_id)
    assert session.active_branch is not None
    again = session.active_branch.messages.get()
    assert again.text == run.trigger_message.text
    assert again.branch_id != run.branch_id


def test_the_navigators_cost_one_query(
    client: Client, alice: User, run: Run, django_assert_num_queries
) -> None:
    message = _talk(run)
    for number in range(3):
        branches.edit_message(message, author=alice, text=f"Version {number}")

    with django_assert_num_queries(1):
        navigators = load_navigators(run.session_id)

    assert {navigator.count for navigator in navigators.values()} == {4}


def test_a_message_leads_to_a_session_of_its_own(
    client: Client, alice: User, run: Run
) -> None:
    _talk(run)
    answer = run.session.messages.get(role=MessageRole.ASSISTANT)
    client.force_login(alice)

    for address in (
        reverse("message_duplicate", args=[answer.pk]),
        reverse("session_duplicate", args=[run.session_id]),
    ):
        response = client.post(address)

        copy = AgentSession.objects.exclude(pk=run.session_id).latest("created_at")
        assert response["Location"] == reverse("session_detail", args=[copy.pk])
        shown = client.get(response["Location"]).content.decode()
        assert "Three." in shown
        assert "The agent remembers it." in shown
    assert AgentSession.objects.count() == 3


def test_who_may_only_look_copies_nothing(
    client: Client, alice: User, bob: User, run: Run
) -> None:
    message = _talk(run)
    Share.objects.create(session=run.session, user=bob, right=ShareRight.VIEW)
    client.force_login(bob)

    refused = [
        client.post(reverse("message_duplicate", args=[message.pk])),
        client.post(reverse("session_duplicate", args=[run.session_id])),
    ]

    assert [response.status_code for response in refused] == [403, 403]
    assert AgentSession.objects.count() == 1
