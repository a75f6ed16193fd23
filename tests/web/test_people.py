"""The owners' page of people and invites."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.domain import accounts
from agents.models import AuditEntry, Invite, User
from agents.models.users import Role
from tests.people import browser, person

LIST = "/settings/people/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def alice(db):
    return person("alice", Role.OWNER)


@pytest.fixture
def bob(db):
    return person("bob")


def edit(client, user, **changes):
    data = {"role": user.role, "security_ceiling": user.security_ceiling}
    data |= {"is_active": "on"} if user.is_active else {}
    data |= changes
    if changes.get("is_active") is False:
        del data["is_active"]
    return client.post(reverse("person_edit", args=[user.pk]), data)


def test_it_lists_people_invites_and_what_happened(alice, bob):
    accounts.create_invite(alice, role=Role.VIEWER)

    page = browser(alice).get(LIST)

    assert ">Edit<" in page.text
    assert "bob" in page.text
    assert "Viewer" in page.text
    assert "invite.created" in page.text


def test_the_setup_link_is_not_among_the_invites(alice):
    Invite.objects.create(
        token_sha256="0" * 64,
        role=Role.OWNER,
        expires_at="2999-01-01T00:00:00Z",
    )

    page = browser(alice).get(LIST)

    assert "No invite is open." in page.text


def test_a_new_invite_shows_its_link_once(alice):
    client = browser(alice)

    response = client.post("/settings/people/invite/", {"role": "member"})

    link = re.search(r'id="invite-link">([^<]+)<', response.text)
    assert link is not None
    assert link[1].startswith("http://testserver/invite/")
    assert browser().get(link[1]).status_code == 200
    assert "no-store" in response["Cache-Control"]
    assert link[1] not in client.get(LIST).text


def test_htmx_gets_only_the_invites(alice):
    response = browser(alice).post(
        "/settings/people/invite/", {"role": "member"}, headers=HTMX
    )

    assert response.text.strip().startswith('<section class="card" id="invites"')
    assert "invite-link" in response.text
    assert "HX-Request" in response["Vary"]


def test_the_link_names_the_address_that_people_use(alice, settings):
    settings.PUBLIC_URL = "https://swarm.example"

    response = browser(alice).post("/settings/people/invite/", {"role": "member"})

    assert "https://swarm.example/invite/" in response.text


def test_an_unknown_role_is_refused(alice):
    response = browser(alice).post("/settings/people/invite/", {"role": "king"})

    assert response.status_code == 422
    assert not Invite.objects.exists()


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_revoked_invite_works_no_more(alice, headers):
    token = accounts.create_invite(alice, role=Role.MEMBER)
    url = reverse("invite_revoke", args=[Invite.objects.get().pk])

    response = browser(alice).post(url, headers=headers)

    assert response.status_code == (200 if headers else 302)
    assert browser().get(reverse("invite_accept", args=[token])).status_code == 404
    assert AuditEntry.objects.get(action="invite.revoked").actor == alice


def test_an_owner_changes_role_and_ceiling(alice, bob):
    response = edit(browser(alice), bob, role="owner", security_ceiling="ask")

    bob.refresh_from_db()
    assert response["Location"] == LIST
    assert (bob.role, bob.is_staff, bob.security_ceiling) == ("owner", True, "ask")
    entry = AuditEntry.objects.get(action="account.changed")
    assert (entry.actor, entry.target_id) == (alice, str(bob.pk))


def test_somebody_switched_off_is_signed_out_everywhere(alice, bob):
    theirs = browser(bob)

    edit(browser(alice), bob, is_active=False)
    answer = theirs.get("/settings/preferences/")
    edit(browser(alice), User.objects.get(pk=bob.pk), is_active="on")

    assert answer.status_code == 302
    assert theirs.get("/settings/preferences/").status_code == 302, "still signed out"


@pytest.mark.parametrize("change", [{"role": "member"}, {"is_active": False}])
def test_the_last_owner_stays(alice, bob, change):
    response = edit(browser(alice), alice, **change)

    alice.refresh_from_db()
    assert response.status_code == 422
    assert "The site needs an owner" in response.text
    assert (alice.role, alice.is_active) == ("owner", True)


def test_it_takes_the_same_number_of_queries_for_many(alice, django_assert_num_queries):
    client = browser(alice)
    accounts.create_invite(alice, role=Role.MEMBER)
    with CaptureQueriesContext(
        connection,
    ) as one:
        client.get(LIST)
    for name in ("dora", "emil"):
        person(name)
        accounts.create_invite(alice, role=Role.MEMBER)

    with django_assert_num_queries(len(one)):
        client.get(LIST)
