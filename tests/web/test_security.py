"""What holds on every page: secrets stay out, forms carry a token, headers are set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib import admin
from django.urls import reverse

from agents.domain import accounts
from agents.domain.providers import save_provider
from agents.models import Provider
from agents.models.providers import ProviderKind
from agents.models.users import Role
from agents.web.urls import urlpatterns
from tests.people import browser, person

KEY = "sk-ant-canary-5f2c9d1e7b"
ROOT = Path(__file__).parents[2]
PLAIN_PAGES = [str(route.name) for route in urlpatterns if not route.pattern.converters]


def make_provider(owner) -> Provider:
    provider = Provider(
        owner=owner,
        name="Canary",
        kind=ProviderKind.GATEWAY,
        base_url="http://127.0.0.1:9",
        api_key=KEY,
    )
    return save_provider(provider, owner)


def admin_pages() -> list[str]:
    urls = [reverse("admin:index")]
    for model in admin.site._registry:
        path = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        urls.append(reverse(f"{path}_changelist"))
        rows = model._default_manager.values_list("pk", flat=True)[:3]
        urls += [reverse(f"{path}_change", args=[pk]) for pk in rows]
        urls += [reverse(f"{path}_history", args=[pk]) for pk in rows]
    return urls


def test_the_key_is_on_no_page(db):
    alice = person("alice", Role.OWNER)
    provider = make_provider(alice)
    client = browser(alice)
    test_page = client.post(
        reverse("provider_test", args=[provider.pk]), HTTP_HX_REQUEST="true"
    )
    urls = [reverse(name) for name in PLAIN_PAGES if name != "logout"]
    urls += [reverse("provider_edit", args=[provider.pk]), *admin_pages()]

    pages = {url: client.get(url) for url in urls}

    assert KEY not in test_page.text
    assert [url for url, page in pages.items() if KEY in page.text] == []
    assert [url for url, page in pages.items() if page.status_code >= 500] == []
    assert sum(page.status_code == 200 for page in pages.values()) > 20
    assert provider.name in pages[reverse("provider_list")].text, "the control"


def test_every_form_needs_its_token(db):
    alice = person("alice", Role.OWNER)
    provider = make_provider(alice)
    client = browser(alice, enforce_csrf_checks=True)
    urls = [reverse(name) for name in PLAIN_PAGES]
    urls.append(reverse("provider_delete", args=[provider.pk]))

    answers = {url: client.post(url).status_code for url in urls}

    assert set(answers.values()) == {403}
    assert Provider.objects.filter(pk=provider.pk).exists()


def test_the_token_of_the_page_is_enough(db):
    client = browser(person("alice"), enforce_csrf_checks=True)
    client.get(reverse("preferences"))
    token = client.cookies["csrftoken"].value

    response = client.post(
        reverse("theme_set"), {"theme": "dark"}, HTTP_X_CSRFTOKEN=token
    )

    assert response.status_code == 302


@pytest.mark.parametrize("url", ["/login/", "/settings/preferences/", "/admin/", "/x/"])
def test_every_answer_carries_the_headers(db, url):
    response = browser(person("alice", Role.OWNER)).get(url)

    policy = response["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
    assert response["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.parametrize("url", ["/login/", "/settings/people/", "/admin/"])
def test_no_page_has_inline_script_or_style(db, url):
    client = browser() if url == "/login/" else browser(person("alice", Role.OWNER))

    page = client.get(url).text

    assert page.count("<script") == page.count("<script src=")
    assert " onclick=" not in page
    assert " style=" not in page
    assert "<style" not in page


def test_a_foreign_host_is_refused(db):
    assert browser().get("/login/", HTTP_HOST="evil.example").status_code == 400


PRODUCTION = """
import json
import django
django.setup()
from django.conf import settings
from django.core.management import call_command
call_command("migrate", verbosity=0)
from agents.models import User
from django.test import Client
(settings.DATA_DIR / "static").mkdir(exist_ok=True)
settings.STORAGES["staticfiles"]["BACKEND"] = (
    "django.contrib.staticfiles.storage.StaticFilesStorage"
)
User.objects.create_user("alice", password="pw")
client = Client(HTTP_HOST="swarm.example", enforce_csrf_checks=True)
plain = client.get("/login/")
page = client.get("/login/", secure=True)
token = client.cookies["csrftoken"].value
client.post(
    "/login/", {"username": "alice", "password": "pw", "csrfmiddlewaretoken": token},
    secure=True, HTTP_REFERER="https://swarm.example/login/",
)
print(json.dumps({
    "redirect": plain["Location"],
    "hsts": page["Strict-Transport-Security"],
    "cookies": {
        name: {flag: bool(morsel[flag]) for flag in ("secure", "httponly")}
        | {"samesite": morsel["samesite"]}
        for name, morsel in client.cookies.items()
    },
}))
"""


def test_the_cookies_of_a_public_site_are_locked_down(tmp_path):
    """In a process of its own: these settings follow from the environment."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OPENSWARM_")
    } | {
        "DJANGO_SETTINGS_MODULE": "openswarm.settings",
        "OPENSWARM_DATA_DIR": str(tmp_path),
        "OPENSWARM_URL": "https://swarm.example",
    }

    done = subprocess.run(
        [sys.executable, "-c", PRODUCTION],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    found = json.loads(done.stdout)
    locked = {"secure": True, "httponly": True, "samesite": "Lax"}
    assert found["redirect"] == "https://swarm.example/login/"
    assert found["hsts"].startswith("max-age=31536000")
    assert found["cookies"]["sessionid"] == locked
    assert found["cookies"]["csrftoken"] == locked | {"httponly": False}


def test_the_key_of_the_site_is_no_setting_of_django():
    """An encryption key of its own: SECRET_KEY may change without losing anything."""
    assert settings.SECRET_KEY not in settings.ENCRYPTION_KEYS


@pytest.mark.parametrize("route", ["setup", "invite_accept"])
def test_a_refused_account_leaves_no_link_in_the_log(db, caplog, route):
    if route == "setup":
        token = accounts.issue_setup_token()
    else:
        token = accounts.create_invite(person("olga", Role.OWNER), role=Role.MEMBER)

    response = browser().post(reverse(route, args=[token]), {"username": "b c"})

    assert response.status_code == 422
    assert "Unprocessable" in caplog.text
    assert token not in caplog.text
