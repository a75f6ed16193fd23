"""Settings → API tokens."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from agents.domain.tokens import create_token, find_token
from agents.models import ApiToken, User
from tests.dom import parse
from tests.people import browser

pytestmark = pytest.mark.django_db
URL = "/settings/tokens/"
FORM = {"name": "My script", "scopes": ["read", "decide"], "days": "30"}


@pytest.fixture
def client(alice: User) -> Client:
    return browser(alice)


def test_a_new_token_is_shown_once(client: Client, alice: User) -> None:
    answer = client.post(URL, FORM)
    later = client.get(URL)

    [shown] = parse(answer.text).find_all("p", id="new-token")
    found = find_token(shown.words)
    assert found is not None
    assert (found.user, found.scopes) == (alice, ["read", "decide"])
    assert "no-store" in answer["Cache-Control"]
    assert shown.words not in later.text
    [row] = parse(later.text).find_all("tbody")
    assert row.words.startswith(f"My script {found.prefix}… Read, Decide")


@pytest.mark.parametrize("left_out", ["name", "scopes", "days"])
def test_what_is_missing_is_said_at_its_field(client: Client, left_out: str) -> None:
    answer = client.post(URL, {k: v for k, v in FORM.items() if k != left_out})

    assert answer.status_code == 422
    assert not ApiToken.objects.exists()
    assert "data-invalid" in answer.text


def test_a_token_that_works_until_it_is_revoked(client: Client) -> None:
    client.post(URL, {**FORM, "days": "always"})

    token = ApiToken.objects.get()
    assert token.expires_at is None
    answer = client.post(reverse("token_revoke", args=[token.pk]))
    assert answer["Location"] == URL
    assert not ApiToken.objects.exists()
    assert "You have no token yet." in client.get(URL).text


def test_nobody_sees_or_ends_a_token_of_somebody_else(
    client: Client, bob: User
) -> None:
    create_token(bob, name="Bob’s", scopes=["read"], days=1)
    token = ApiToken.objects.get()

    assert "Bob’s" not in client.get(URL).text
    assert client.post(reverse("token_revoke", args=[token.pk])).status_code == 404
    assert ApiToken.objects.exists()


def test_the_reference_lists_every_operation_without_a_script(client: Client) -> None:
    page = parse(client.get("/api/").text)
    document = client.get("/api/openapi.json").json()

    requests = {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method in methods
    }
    assert requests <= {code.words for code in page.find_all("code")}
    assert all(
        script.attributes["src"].startswith("/static/")
        for script in page.find_all("script")
    )
