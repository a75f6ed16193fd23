"""Providers: their form, their list, and the "Test" button."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.domain.providers import demo_provider
from agents.models import AuditEntry, Provider
from agents.models.providers import ProviderKind
from agents.models.users import Role
from tests.people import browser, person

LIST = "/settings/providers/"
NEW = "/settings/providers/new/"
KEY = "sk-ant-test-0123456789"
SLOW_KEY = "sk-ant-slow"
DATA = {"name": "Mine", "kind": "anthropic", "base_url": "", "is_enabled": "on"}
HTMX = {"HX-Request": "true"}


class Upstream(BaseHTTPRequestHandler):
    """A gateway that lists one model and takes one key."""

    keys: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self._answer({"data": [{"id": "claude-found-1"}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._answer({"input_tokens": 1})

    def _answer(self, data: dict) -> None:
        key = self.headers["x-api-key"]
        if key == SLOW_KEY:
            self.rfile.read(1)  # until the client hangs up
            return
        self.keys.append(key)
        body = json.dumps(data if key == KEY else {"error": "no"}).encode()
        self.send_response(200 if key == KEY else 401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[tuple[str, list[str | None]]]:
    Upstream.keys.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", Upstream.keys
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def alice(db):
    return person("alice", Role.OWNER)


@pytest.fixture
def charlie(db):
    return person("charlie")


@pytest.fixture
def mine(alice):
    return Provider.objects.create(
        owner=alice, name="Mine", kind=ProviderKind.ANTHROPIC, api_key=KEY
    )


def edit(client, provider, **changes):
    return client.post(reverse("provider_edit", args=[provider.pk]), DATA | changes)


def test_a_key_goes_in_and_never_comes_out(alice):
    client = browser(alice)

    response = client.post(NEW, DATA | {"api_key": f" {KEY}\n"})

    provider = Provider.objects.get()
    assert response["Location"] == LIST
    assert (provider.owner, provider.api_key) == (alice, KEY)
    assert "stored, encrypted" in client.get(LIST).text
    edit_page = client.get(reverse("provider_edit", args=[provider.pk]))
    assert KEY not in edit_page.text
    assert "A key is stored. Empty keeps it." in edit_page.text
    assert KEY not in json.dumps(list(AuditEntry.objects.values("action", "data")))


def test_a_subscription_has_a_token_and_no_key_of_the_api(alice):
    client, data = browser(alice), DATA | {"kind": "subscription"}

    key = client.post(NEW, data | {"api_key": "sk-ant-api03-x"})
    none = client.post(NEW, data)
    client.post(NEW, data | {"api_key": "sk-ant-oat01-canary"})

    assert (key.status_code, none.status_code) == (422, 422)
    assert "Choose the kind “Anthropic API”." in key.text
    assert "A subscription needs its token." in none.text
    provider = Provider.objects.get()
    assert (provider.kind, provider.api_key) == ("subscription", "sk-ant-oat01-canary")
    page = client.get(LIST).text
    assert "Claude subscription (token)" in page
    assert "canary" not in page
    # An empty field keeps the token.
    assert edit(client, provider, kind="subscription").status_code == 302


def test_names_can_be_typed_for_a_provider_that_lists_none(alice, mine):
    client = browser(alice)

    edit(client, mine, models_typed=" llama-9 \r\n\r\nclaude-x\nllama-9")

    mine.refresh_from_db()
    assert mine.models_typed == ["llama-9", "claude-x"]
    page = client.get(LIST).text
    assert "200k context, unverified" in page
    assert '<option value="llama-9">' in client.get("/sessions/new/").text


def test_a_refused_form_does_not_send_the_key_back(alice):
    response = browser(alice).post(NEW, DATA | {"api_key": KEY, "name": ""})

    assert response.status_code == 422
    assert KEY not in response.text


def test_an_empty_key_keeps_the_stored_one(alice, mine):
    edit(browser(alice), mine, name="Renamed")

    mine.refresh_from_db()
    assert (mine.name, mine.api_key) == ("Renamed", KEY)


def test_removing_the_key_takes_its_own_tick(alice, mine):
    edit(browser(alice), mine, remove_key="on")

    mine.refresh_from_db()
    assert mine.api_key == ""


def test_a_new_key_and_removing_it_contradict(alice, mine):
    response = edit(browser(alice), mine, remove_key="on", api_key="sk-new")

    mine.refresh_from_db()
    assert response.status_code == 422
    assert mine.api_key == KEY


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"api_key": "two words"}, "A key has no spaces"),
        ({"api_key": "sk-ä"}, "A key has no spaces"),
        ({"kind": "gateway"}, "A gateway needs its address."),
        ({"base_url": "ftp://example.org"}, "begins with https://"),
        ({"base_url": "https://user:pw@example.org"}, "its own field"),
        ({"kind": "demo"}, "Select a valid choice"),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(alice, changes, sentence):
    response = browser(alice).post(NEW, DATA | changes)

    assert response.status_code == 422
    assert sentence in response.text
    assert not Provider.objects.exists()


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:11434", "http://[::1]/", "http://169.254.169.254"]
)
def test_only_owners_may_point_at_private_addresses(alice, charlie, address):
    data = DATA | {"kind": "gateway", "base_url": address}

    refused = browser(charlie).post(NEW, data)
    taken = browser(alice).post(NEW, data)

    assert refused.status_code == 422
    assert "is a private address" in refused.text
    assert taken.status_code == 302
    assert Provider.objects.get().base_url == address


def test_owners_may_name_a_container(alice):
    browser(alice).post(NEW, DATA | {"kind": "gateway", "base_url": "http://litellm:4"})

    assert Provider.objects.get().base_url == "http://litellm:4"


def test_only_owners_share_with_everybody(alice, charlie):
    browser(alice).post(NEW, DATA | {"is_shared": "on", "name": "For all"})
    browser(charlie).post(NEW, DATA | {"is_shared": "on", "name": "Charlie’s"})

    owners = dict(Provider.objects.values_list("name", "owner__username"))
    assert owners == {"For all": None, "Charlie’s": "charlie"}


def test_sharing_can_be_taken_back(alice, mine):
    client = browser(alice)

    edit(client, mine, is_shared="on")
    mine.refresh_from_db()
    assert mine.owner is None

    edit(client, mine)
    mine.refresh_from_db()
    assert mine.owner == alice


def test_members_see_shared_providers_but_cannot_touch_them(alice, charlie, mine):
    mine.owner = None
    mine.save()
    client = browser(charlie)

    page = client.get(LIST)

    assert "Mine" in page.text
    assert "Used by default" in page.text
    assert ">Test<" not in page.text
    assert edit(client, mine).status_code == 404
    for action in ("provider_delete", "provider_test"):
        assert client.post(reverse(action, args=[mine.pk])).status_code == 404


def test_the_page_says_when_the_demo_model_answers(alice):
    demo_provider()
    client = browser(alice)

    assert "Agents use the demo model" in client.get(LIST).text

    client.post(NEW, DATA | {"api_key": KEY})

    assert "Agents use the demo model" not in client.get(LIST).text


def test_the_demo_provider_is_not_to_be_edited(alice):
    assert edit(browser(alice), demo_provider()).status_code == 404


def test_it_deletes(alice, mine):
    response = browser(alice).post(reverse("provider_delete", args=[mine.pk]))

    assert response["Location"] == LIST
    assert not Provider.objects.exists()


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_testing_uses_the_stored_key_and_shows_the_models(
    alice, mine, upstream, headers
):
    address, keys = upstream
    Provider.objects.filter(pk=mine.pk).update(base_url=address, kind="gateway")
    client = browser(alice)

    response = client.post(reverse("provider_test", args=[mine.pk]), headers=headers)

    shown = response if headers else client.get(LIST)
    assert response.status_code == (200 if headers else 302)
    assert set(keys) == {KEY}
    assert "Works" in shown.text
    assert "claude-found-1" in shown.text


def test_a_refused_key_is_said_in_words(alice, mine, upstream):
    address, _ = upstream
    mine.base_url, mine.kind, mine.api_key = address, "gateway", "sk-wrong"
    mine.save()

    response = browser(alice).post(
        reverse("provider_test", args=[mine.pk]), headers=HTMX
    )

    mine.refresh_from_db()
    assert "Test failed" in response.text
    assert mine.test_error
    assert "sk-wrong" not in response.text


def test_one_that_keeps_us_waiting_is_given_up(alice, mine, upstream, override_conf):
    address, _ = upstream
    override_conf(provider_test_seconds=0.2)
    mine.base_url, mine.kind, mine.api_key = address, "gateway", SLOW_KEY
    mine.save()

    response = browser(alice).post(
        reverse("provider_test", args=[mine.pk]), headers=HTMX
    )

    assert "did not answer within 0.2 seconds" in response.text


def test_an_address_where_nobody_listens_is_said_in_words(alice, mine):
    Provider.objects.filter(pk=mine.pk).update(base_url="http://127.0.0.1:9")

    response = browser(alice).post(
        reverse("provider_test", args=[mine.pk]), headers=HTMX
    )

    assert response.status_code == 200
    assert "Test failed" in response.text
    assert "Traceback" not in response.text


def test_the_list_takes_the_same_number_of_queries_for_many(
    alice, mine, django_assert_num_queries
):
    client = browser(alice)
    with CaptureQueriesContext(connection) as one:
        client.get(LIST)
    for name in ("Two", "Three"):
        Provider.objects.create(owner=alice, name=name, kind=ProviderKind.ANTHROPIC)

    with django_assert_num_queries(len(one)):
        client.get(LIST)
