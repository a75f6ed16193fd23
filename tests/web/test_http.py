"""The three middlewares, and the helpers that every view shares."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django_htmx.middleware import HtmxDetails

from agents.errors import InvalidInputError, NotAllowedError
from agents.web.context import shell
from agents.web.http import PublicRequest, came_from
from agents.web.middleware import ErrorMiddleware
from tests.people import browser, person

HTMX = {"HX-Request": "true"}


def unused(request: HttpRequest) -> HttpResponse:
    raise AssertionError("the hook alone is tested")


@pytest.fixture
def alice(db):
    return person("alice")


def test_an_expired_login_sends_htmx_to_the_page_it_came_from(db):
    response = browser().post(
        "/settings/theme/",
        {"theme": "dark"},
        headers=HTMX | {"HX-Current-URL": "http://testserver/approvals/?tool=Bash"},
    )

    assert response.status_code == 200
    assert response["HX-Redirect"] == "/login/?next=/approvals/%3Ftool%3DBash"
    assert "Location" not in response


def test_htmx_on_a_foreign_page_is_sent_home(db):
    response = browser().get(
        "/settings/providers/",
        headers=HTMX | {"HX-Current-URL": "https://evil.example/"},
    )

    assert response["HX-Redirect"] == "/login/?next=/"


def test_an_expired_login_leads_a_form_back_to_its_page(db):
    response = browser().post(
        "/settings/theme/", HTTP_REFERER="http://testserver/settings/preferences/"
    )

    assert response.status_code == 302
    assert response["Location"] == "/login/?next=/settings/preferences/"


def test_a_page_is_its_own_way_back(db):
    response = browser().get("/settings/providers/?x=1")

    assert response["Location"] == "/login/?next=/settings/providers/%3Fx%3D1"


def test_our_errors_become_a_toast_for_htmx(alice):
    response = browser(alice).post("/settings/theme/", {"theme": "pink"}, headers=HTMX)

    assert response.status_code == 422
    assert response.text == "There is no theme of this name."
    assert response["Content-Type"].startswith("text/plain")
    assert response["HX-Reswap"] == "none"
    assert json.loads(response["HX-Trigger"]) == {
        "toast": {"level": "error", "text": "There is no theme of this name."}
    }


@pytest.mark.parametrize(
    ("error", "status"),
    [(NotAllowedError("No “<b>way</b>”."), 403), (InvalidInputError("Hm."), 422)],
)
def test_our_errors_become_a_page_of_their_status(error, status):
    request = PublicRequest()
    request.META = {"SERVER_NAME": "testserver", "SERVER_PORT": "80"}
    request.user = AnonymousUser()
    request.htmx = HtmxDetails(request)

    response = ErrorMiddleware(unused).process_exception(request, error)

    assert response is not None
    assert response.status_code == status
    assert "<b>way" not in response.content.decode()


def test_other_errors_are_none_of_its_business():
    request = RequestFactory().get("/")

    answer = ErrorMiddleware(unused).process_exception(request, KeyError())

    assert answer is None


@pytest.mark.parametrize(
    ("referer", "expected"),
    [
        ("http://testserver/a/?b=1#c", "/a/?b=1"),
        ("https://evil.example/a/", "/fallback/"),
        ("http://testserver//evil.example/", "/fallback/"),
        ("http://testserver/\\evil.example/", "/fallback/"),
        ("", "/fallback/"),
    ],
)
def test_it_goes_back_only_within_the_site(referer, expected):
    request = RequestFactory().get("/", HTTP_REFERER=referer)

    assert came_from(request, "/fallback/") == expected


def test_the_shell_asks_nothing_until_it_is_looked_at(alice):
    request = RequestFactory().get("/")
    request.user = alice

    with CaptureQueriesContext(connection) as none:
        context = shell(request)["shell"]
        assert context["user"] is alice
    with CaptureQueriesContext(connection) as some:
        assert context["pending_count"] == 0
        assert list(context["sessions_recent"]) == []

    assert len(none) == 0
    assert len(some) > 0


def test_strangers_have_no_shell(db):
    request = RequestFactory().get("/")
    request.user = AnonymousUser()

    assert shell(request) == {"shell": {}}
    assert shell(RequestFactory().get("/")) == {"shell": {}}
