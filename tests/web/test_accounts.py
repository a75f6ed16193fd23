"""Signing in and out, accounts by link, passwords."""

from __future__ import annotations

import pytest
from django.urls import reverse

from agents.domain import accounts
from agents.models import AuditEntry, Invite, User
from agents.models.users import Role
from tests.people import PASSWORD, browser, person

LOGIN = "/login/"
NEW_ACCOUNT = {
    "username": "dora",
    "email": "",
    "password": "plenty of letters 7",
    "repeated": "plenty of letters 7",
}


@pytest.fixture
def alice(db):
    return person("alice", Role.OWNER)


def sign_in(client, username="alice", password=PASSWORD, **extra):
    data = {"username": username, "password": password}
    return client.post(LOGIN, data | extra.pop("data", {}), **extra)


def signed_in_as(client) -> str | None:
    user_id: str | None = client.session.get("_auth_user_id")
    return user_id


def test_it_signs_in_and_goes_where_the_person_wanted(alice):
    client = browser()

    response = sign_in(client, data={"next": "/settings/providers/"})

    assert response.status_code == 302
    assert response["Location"] == "/settings/providers/"
    assert signed_in_as(client) == str(alice.pk)
    assert AuditEntry.objects.get(action="login.succeeded").actor == alice


@pytest.mark.parametrize(
    "foreign",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "javascript:alert(1)",
        "http:evil.example",
    ],
)
def test_it_never_leads_to_another_site(alice, foreign):
    response = sign_in(browser(), data={"next": foreign})

    assert response["Location"] == reverse("session_list")


def test_the_page_keeps_next_in_its_form(alice):
    page = browser().get(LOGIN, {"next": "/approvals/"})

    assert '<input type="hidden" name="next" value="/approvals/">' in page.text


def test_a_wrong_password_says_so_and_keeps_the_name(alice):
    response = sign_in(browser(), password="wrong")

    assert response.status_code == 422
    assert "don’t go together" in response.text
    assert 'value="alice"' in response.text
    assert "wrong" not in response.text
    assert AuditEntry.objects.get(action="login.failed").data == {"username": "alice"}


def test_the_session_key_changes_at_sign_in(alice):
    client = browser()
    client.get(LOGIN)
    before = client.session
    before["planted"] = True
    before.save()
    client.cookies["sessionid"] = before.session_key or ""

    sign_in(client)

    assert client.session.session_key != before.session_key


def test_too_many_failures_block_even_the_right_password(alice, override_conf):
    override_conf(login_attempts=3)
    client = browser()
    for _ in range(3):
        assert sign_in(client, password="wrong").status_code == 422

    response = sign_in(client)

    assert response.status_code == 429
    assert "Wait 5 minutes, then try again." in response.text
    assert signed_in_as(client) is None
    assert AuditEntry.objects.filter(action="login.failed").count() == 3


def test_failures_elsewhere_do_not_block_another_name(alice, override_conf):
    override_conf(login_attempts=2)
    for _ in range(2):
        sign_in(browser(), "mallory", "wrong", REMOTE_ADDR="203.0.113.9")

    assert sign_in(browser(), REMOTE_ADDR="203.0.113.10").status_code == 302


def test_a_forwarded_address_counts_only_behind_a_proxy(alice, settings):
    forwarded = {"HTTP_X_FORWARDED_FOR": "198.51.100.1, 203.0.113.7"}

    sign_in(browser(), password="wrong", **forwarded)
    settings.TRUST_FORWARDED_FOR = True
    sign_in(browser(), password="wrong", **forwarded)
    sign_in(browser(), password="wrong", HTTP_X_FORWARDED_FOR="no address")

    entries = AuditEntry.objects.filter(action="login.failed").order_by("pk")
    assert [entry.address for entry in entries] == [
        "127.0.0.1",
        "203.0.113.7",
        "127.0.0.1",
    ]


def test_an_account_that_is_off_cannot_sign_in(alice):
    person("bob", is_active=False)

    assert sign_in(browser(), "bob").status_code == 422


def test_somebody_signed_in_is_sent_on(alice):
    response = browser(alice).get(LOGIN, {"next": "/approvals/"})

    assert response["Location"] == "/approvals/"


def test_without_anybody_the_page_says_where_the_setup_link_is(db):
    assert "printed a setup link" in browser().get(LOGIN).text


def test_it_signs_out_by_post_only(alice):
    client = browser(alice)

    assert client.get("/logout/").status_code == 405
    assert signed_in_as(client) == str(alice.pk)

    response = client.post("/logout/")

    assert response["Location"] == LOGIN
    assert signed_in_as(client) is None


def test_the_setup_link_makes_the_owner_and_signs_in(db):
    client = browser()
    url = reverse("setup", args=[accounts.issue_setup_token()])

    page = client.get(url)
    response = client.post(url, NEW_ACCOUNT)

    owner = User.objects.get()
    assert page.status_code == 200
    assert "Make the owner’s account" in page.text
    assert response["Location"] == reverse("session_new")
    assert (owner.role, owner.is_staff, owner.is_superuser) == ("owner", True, True)
    assert signed_in_as(client) == str(owner.pk)
    assert client.get(url).status_code == 404, "it works once"


def test_an_invite_link_makes_an_account_of_its_role(alice):
    token = accounts.create_invite(alice, role=Role.VIEWER)
    client = browser()
    url = reverse("invite_accept", args=[token])

    page = client.get(url)
    response = client.post(url, NEW_ACCOUNT)

    dora = User.objects.get(username="dora")
    assert "alice invites you as viewer" in page.text
    assert response["Location"] == reverse("session_list")
    assert (dora.role, dora.is_staff) == ("viewer", False)
    assert client.get(url).status_code == 404


def test_a_setup_link_is_no_invite_and_an_invite_no_setup_link(alice):
    token = accounts.create_invite(alice, role=Role.OWNER)

    assert browser().get(reverse("setup", args=[token])).status_code == 404


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"username": "ALICE"}, "Somebody has this username already."),
        ({"repeated": "something else 7"}, "This is not the same password."),
        ({"password": "123", "repeated": "123"}, "This password is too short."),
        ({"username": "no spaces"}, "Enter a valid username."),
        ({"username": "nul\x00"}, "Null characters are not allowed."),
    ],
)
def test_a_bad_account_is_refused_and_keeps_the_link(alice, change, sentence):
    token = accounts.create_invite(alice, role=Role.MEMBER)

    response = browser().post(
        reverse("invite_accept", args=[token]), NEW_ACCOUNT | change
    )

    assert response.status_code == 422
    assert sentence in response.text
    assert User.objects.count() == 1
    assert Invite.objects.open().count() == 1


def test_a_wrong_link_says_what_to_do(alice):
    response = browser().get(reverse("invite_accept", args=["wrong"]))

    assert response.status_code == 404
    assert "Ask an owner of this site for a new one." in response.text


def test_a_changed_password_signs_out_the_other_browsers(alice):
    here, elsewhere = browser(alice), browser(alice)

    response = here.post(
        "/settings/password/",
        {
            "old_password": PASSWORD,
            "new_password1": "another horse battery",
            "new_password2": "another horse battery",
        },
    )

    assert response["Location"] == reverse("preferences")
    assert here.get("/settings/password/").status_code == 200
    assert elsewhere.get("/settings/password/").status_code == 302
    assert AuditEntry.objects.get(action="password.changed").actor == alice


def test_the_old_password_is_needed(alice):
    response = browser(alice).post(
        "/settings/password/",
        {
            "old_password": "wrong",
            "new_password1": "another horse battery",
            "new_password2": "another horse battery",
        },
    )

    alice.refresh_from_db()
    assert response.status_code == 422
    assert alice.check_password(PASSWORD)
