"""The history page: search, filters, pages, export and import."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agents.domain.accounts import preferences_of
from agents.domain.export import export_json
from agents.models import AgentSession, Share, User
from agents.models.users import Role
from tests import factories
from tests.dom import Node, parse

HTMX = {"HX-Request": "true"}

pytestmark = pytest.mark.django_db


def search(client: Client, answered: int = 200, **query: Any) -> Node:
    response = client.get("/history/", query)
    assert response.status_code == answered
    return parse(response.text)


def names(page: Node) -> list[str]:
    return [
        node.words
        for node in page.find_all("a")
        if node.attributes.get("class") == "history-entry__name"
    ]


def upload(client: Client, content: str | bytes, **headers: Any):
    data = content.encode() if isinstance(content, str) else content
    file = SimpleUploadedFile("session.json", data, content_type="application/json")
    return client.post("/history/import/", {"file": file}, **headers)


def test_the_sidebar_leads_there(alice, sign_in):
    page = parse(sign_in(alice).get("/").text)

    (link,) = page.find_all("a", title="History")
    assert [link.attributes["href"], link.words] == ["/history/", "History"]


def test_the_field_is_named_search_and_keeps_what_was_typed(alice, sign_in):
    page = search(sign_in(alice), q="a <b> & c")

    field = page.find("id_q")
    (label,) = page.find_all("label", **{"for": "id_q"})
    assert [label.words, field.attributes["value"]] == ["Search", "a <b> & c"]


def test_a_hit_is_marked_and_leads_to_its_message(run, alice, sign_in):
    said = factories.say(run, "The <i>Indigo</i> bunting sings")

    page = search(sign_in(alice), q="indigo")

    (link,) = page.find_all("a", **{"class": "history-hit"})
    assert [node.text for node in link.find_all("mark")] == ["Indigo"]
    assert link.words == "Assistant The <i>Indigo</i> bunting sings"
    assert link.attributes["href"] == (
        f"/sessions/{run.session_id}/?branch={run.branch_id}"
        f"&message={said.pk}#message-{said.pk}"
    )


@pytest.mark.parametrize("q", ["<script>alert(1)</script>", "onerror=", '"><img src=x'])
def test_hostile_words_stay_words(run, alice, sign_in, q):
    factories.say(run, f"a {q} b \u202e c \x00 d")

    response = sign_in(alice).get("/history/", {"q": q})
    page = parse(response.text)

    (mark,) = page.find_all("mark")
    assert mark.text == q
    assert "<script>alert" not in response.text
    assert not page.find_all("img")
    assert "\u202e" not in response.text


def test_a_strangers_search_says_nothing(run, charlie, sign_in):
    factories.say(run, "a secret orchid")

    page = search(sign_in(charlie), q="orchid")

    assert names(page) == []
    assert "No history yet" in page.words


def test_empty_states_say_what_to_do(session, alice, sign_in):
    page = search(sign_in(alice), q="nowhere to be found")

    assert "Nothing found" in page.words
    assert [
        a.attributes["href"] for a in page.find_all("a") if a.words == "Show everything"
    ] == ["/history/"]


def test_htmx_gets_the_results_alone(session, alice, sign_in):
    response = sign_in(alice).get("/history/", {"q": "Count"}, headers=HTMX)

    (results,) = parse(response.text.strip()).children
    assert isinstance(results, Node)
    assert results.id == "history-results"
    assert "HX-Request" in response["Vary"]
    assert "<html" not in response.text


def test_there_are_twenty_a_page_and_searches_keep_their_words(alice, sign_in):
    AgentSession.objects.bulk_create(
        AgentSession(owner=alice, name=f"Robin {at:02}") for at in range(41)
    )
    client = sign_in(alice)

    first, second = (search(client, q="robin", page=at) for at in (1, 2))
    (older,) = first.find_all("a", rel="next")

    assert [len(names(first)), len(names(second))] == [20, 20]
    assert not set(names(first)) & set(names(second))
    assert "q=robin" in older.attributes["href"]
    assert "page=2" in older.attributes["href"]
    assert "41 sessions" in first.words


@pytest.mark.parametrize("page", ["3", "99", "999999999999", "-1", "x", "²"])
def test_a_page_that_is_not_there_is_one_that_is(alice, sign_in, page):
    AgentSession.objects.bulk_create(
        AgentSession(owner=alice, name=f"Robin {at:02}") for at in range(41)
    )

    assert len(names(search(sign_in(alice), q="robin", page=page))) in (1, 20)


def test_filters_are_days_in_the_persons_time_zone(alice, sign_in):
    preferences = preferences_of(alice)
    preferences.timezone = "Asia/Tokyo"
    preferences.save()
    AgentSession.objects.create(
        owner=alice, name="Late", updated_at=datetime(2026, 3, 1, 15, 30, tzinfo=UTC)
    )
    client = sign_in(alice)

    assert names(search(client, since="2026-03-02", until="2026-03-02")) == ["Late"]
    assert names(search(client, until="2026-03-01")) == []


def test_other_filters_narrow_the_list(alice, sign_in):
    for name, cost, status in (("Cheap", 10_000, "idle"), ("Dear", 9_000_000, "error")):
        AgentSession.objects.create(
            owner=alice, name=name, cost_usd_micros=cost, status=status, mode="plan"
        )
    client = sign_in(alice)

    assert names(search(client, min_cost="0.02")) == ["Dear"]
    assert names(search(client, max_cost="0.02")) == ["Cheap"]
    assert names(search(client, status="error", mode="plan")) == ["Dear"]
    assert names(search(client, status="error", mode="ask")) == []
    assert names(search(client, closed="yes")) == []


@pytest.mark.parametrize(
    "query",
    [
        {"mode": "no-such-mode"},
        {"since": "yesterday"},
        {"min_cost": "-1"},
        {"status": "asleep"},
        {"q": "x" * 201},
    ],
)
def test_a_wrong_filter_says_so_and_searches_nothing(session, alice, sign_in, query):
    page = search(sign_in(alice), answered=422, **query)

    assert "Nothing was searched" in page.words
    assert names(page) == []


def test_the_last_day_there_is_is_no_error(session, alice, sign_in):
    assert len(names(search(sign_in(alice), until="9999-12-31"))) == 1


@pytest.mark.parametrize(
    ("wanted", "kind", "name"),
    [
        ("markdown", "text/markdown; charset=utf-8", "count-to-three.md"),
        ("json", "application/json", "count-to-three.json"),
    ],
)
def test_a_session_is_downloaded(session, alice, sign_in, wanted, kind, name):
    response = sign_in(alice).get(f"/sessions/{session.pk}/export/", {"format": wanted})

    assert response["Content-Type"] == kind
    assert response["Content-Disposition"] == f'attachment; filename="{name}"'
    assert "Count to three" in response.text


def test_other_formats_are_not_there(session, alice, sign_in):
    path = f"/sessions/{session.pk}/export/"

    assert sign_in(alice).get(path, {"format": "exe"}).status_code == 404


def test_the_session_page_offers_both_to_everyone_who_sees_it(
    session, bob, alice, sign_in
):
    Share.objects.create(session=session, user=bob)

    for user in (alice, bob):
        page = parse(sign_in(user).get(f"/sessions/{session.pk}/").text)
        links = [a for a in page.find_all("a") if a.words.startswith("Export as")]
        assert [link.words for link in links] == [
            "Export as Markdown",
            "Export as JSON",
        ]
        for link in links:
            assert sign_in(user).get(link.attributes["href"]).status_code == 200


def test_an_exported_session_is_imported_by_its_form(session, alice, charlie, sign_in):
    client = sign_in(charlie)

    response = upload(client, export_json(session))

    imported = charlie.sessions.get()
    assert response.status_code == 302
    assert response["Location"] == f"/sessions/{imported.pk}/"
    page = client.get(response["Location"])
    assert "Count to three" in page.text
    assert "The agent remembers nothing of it" in page.text


def test_htmx_is_sent_to_the_imported_session(session, alice, sign_in):
    response = upload(sign_in(alice), export_json(session), headers=HTMX)

    assert response["HX-Redirect"].startswith("/sessions/")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "The file is empty."),
        ("{", "This is not a JSON file."),
        (b"\xff\xfe", "This is not a JSON file."),
        ("[" * 100_000, "This is not a JSON file."),
        ("[]", "file is not an object."),
        ("{}", "This is not an exported session."),
        (json.dumps({"format": "openswarm-session", "version": 9}), "another version"),
    ],
)
def test_a_wrong_file_is_refused_at_its_field(alice, sign_in, content, sentence):
    response = upload(sign_in(alice), content)

    page = parse(response.text)
    assert response.status_code == 422
    assert sentence in page.find("import-form").words
    assert not alice.sessions.exists()


def test_without_a_file_the_form_says_so(alice, sign_in):
    response = sign_in(alice).post("/history/import/")

    assert response.status_code == 422
    assert "This field is required." in parse(response.text).find("import-form").words


def test_viewers_are_not_offered_an_import_and_refused_one(session, sign_in):
    viewer: User = factories.make_user("vera", role=Role.VIEWER)
    client = sign_in(viewer)

    assert not search(client).has("import-form")
    assert upload(client, export_json(session)).status_code == 403
