"""Preferences and the theme switch."""

from __future__ import annotations

import pytest
from django.urls import reverse

from agents.domain.accounts import preferences_of
from agents.models import Mode, Provider
from agents.models.providers import ProviderKind
from tests.people import browser, person

EDIT = "/settings/preferences/"
DATA = {
    "theme": "dark",
    "timezone": "Asia/Tokyo",
    "default_model": "claude-opus-5",
    "default_mode": "plan",
    "default_effort": "high",
    "default_security_mode": "sandbox",
    "default_folder": "",
    "system_prompt": "Be brief.",
    "ask_for_everything": "on",
    "on_timeout": "deny",
    "notify_on_completion": "on",
}


@pytest.fixture
def alice(db):
    return person("alice")


def test_it_saves_everything(alice):
    response = browser(alice).post(EDIT, DATA)

    saved = preferences_of(alice)
    assert response["Location"] == reverse("preferences")
    assert {name: getattr(saved, name) for name in DATA if DATA[name] != "on"} == {
        name: value for name, value in DATA.items() if value != "on"
    } | {"default_folder": None}
    assert saved.ask_for_everything
    assert saved.notify_on_completion
    assert not saved.notify_on_approval


def test_the_page_offers_what_there_is(alice):
    Provider.objects.create(
        owner=alice,
        name="Mine",
        kind=ProviderKind.ANTHROPIC,
        models_found=["claude-found-1"],
    )
    Mode.objects.create(owner=alice, slug="mine", name="My mode")

    page = browser(alice).get(EDIT)

    assert '<option value="claude-found-1">' in page.text
    assert '<option value="mine">My mode</option>' in page.text
    assert '<option value="Europe/Berlin">' in page.text


def test_no_mode_wider_than_the_ceiling_is_offered_or_taken(alice):
    alice.security_ceiling = "allowlist"
    alice.save()
    client = browser(alice)

    page = client.get(EDIT)
    response = client.post(EDIT, DATA | {"default_security_mode": "full"})

    assert '<option value="full">' not in page.text
    assert '<option value="allowlist" selected>' in page.text, "capped from ask"
    assert response.status_code == 422


@pytest.mark.parametrize(
    "change",
    [
        {"timezone": "Mars/Olympus"},
        {"timezone": "../etc/passwd"},
        {"default_mode": "unknown"},
        {"theme": "pink"},
        {"default_folder": "zz"},
    ],
)
def test_bad_input_is_refused_and_kept_in_the_form(alice, change):
    response = browser(alice).post(EDIT, DATA | change)

    assert response.status_code == 422
    assert "Be brief." in response.text
    assert preferences_of(alice).system_prompt == ""


def test_a_folder_that_is_none_is_refused_in_words(alice):
    response = browser(alice).post(EDIT, DATA | {"default_folder": "zz"})

    assert "Choose one of the list." in response.text
    assert "UUID" not in response.text


def test_nothing_typed_is_refused_for_a_null_character(alice):
    texts = {"system_prompt": "Be\0brief.", "default_model": "claude\0opus"}

    response = browser(alice).post(EDIT, DATA | texts)

    assert response.status_code == 302
    saved = preferences_of(alice)
    assert saved.system_prompt == "Be\ufffdbrief."
    assert saved.default_model == "claude\ufffdopus"


def test_times_are_shown_in_the_persons_zone(alice):
    preferences = preferences_of(alice)
    preferences.timezone = "Asia/Tokyo"
    preferences.save()
    provider = Provider.objects.create(
        owner=alice,
        name="Mine",
        kind=ProviderKind.ANTHROPIC,
        tested_at="2020-01-01T00:00:00Z",
    )

    page = browser(alice).get(reverse("provider_list"))

    assert "1 Jan 2020, 09:00:00 JST" in page.text
    assert provider.name in page.text


def test_a_zone_that_is_gone_means_utc(alice):
    preferences = preferences_of(alice)
    preferences.timezone = "Gone/Zone"
    preferences.save()

    assert browser(alice).get(EDIT).status_code == 200


def test_the_theme_is_stored_and_shown(alice):
    client = browser(alice)

    response = client.post(
        "/settings/theme/", {"theme": "dark"}, HTTP_REFERER=f"http://testserver{EDIT}"
    )

    assert response["Location"] == EDIT
    assert 'data-theme="dark"' in client.get(EDIT).text


def test_the_script_gets_no_page_back(alice):
    response = browser(alice).post(
        "/settings/theme/", {"theme": "light"}, HTTP_SEC_FETCH_DEST="empty"
    )

    assert response.status_code == 204
    assert preferences_of(alice).theme == "light"


def test_an_unknown_theme_is_refused_in_words(alice):
    response = browser(alice).post("/settings/theme/", {"theme": "pink"})

    assert response.status_code == 422
    assert "There is no theme of this name." in response.text
    assert "Traceback" not in response.text


def test_the_theme_form_never_leads_to_another_site(alice):
    response = browser(alice).post(
        "/settings/theme/", {"theme": "dark"}, HTTP_REFERER="https://evil.example/x"
    )

    assert response["Location"] == "/"
