"""Settings → Modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from agents.models import McpServer, McpTool, Mode, User
from agents.models.users import Role
from tests import factories
from tests.dom import Node, parse

SignIn = Callable[[User], Client]
FORM = {
    "name": "Reviewer",
    "description": "Looks twice.",
    "system_prompt": "Look.",
    "reach": "chosen",
    "tools": ["Read", "mcp:notes"],
    "default_next_mode": "agent",
    "icon": "eye",
    "color": "#ff0000",
}

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(alice: User, sign_in: SignIn) -> Client:
    server = McpServer.objects.create(
        owner=alice, slug="notes", name="Notes", transport="http", url="http://[::1]:9"
    )
    McpTool.objects.create(server=server, name="write", offered_name="write")
    return sign_in(alice)


def page_of(response: Any) -> Node:
    return parse(response.content.decode())


def test_a_mode_is_made_listed_changed_and_deleted(client: Client) -> None:
    assert client.post("/settings/modes/new/", FORM).status_code == 302
    mode = Mode.objects.get(slug="reviewer")
    assert (mode.tools, mode.icon) == (["Read", "mcp:notes"], "eye")
    page = page_of(client.get("/settings/modes/"))
    assert "Reviewer" in page.words
    assert "Read, mcp:notes" in page.words

    address = f"/settings/modes/{mode.pk}/"
    words = page_of(client.get(address)).words
    assert "All its tools" in words
    one = {**FORM, "tools": ["mcp__notes__write"], "name": "Writer"}
    assert client.post(address, one).status_code == 302
    mode.refresh_from_db()
    assert (mode.name, mode.slug) == ("Writer", "reviewer")
    assert mode.tools == ["mcp__notes__write"]

    assert client.post(f"{address}delete/").status_code == 302
    assert not Mode.objects.filter(slug="reviewer").exists()


def test_it_is_offered_wherever_a_mode_is_chosen(client: Client) -> None:
    client.post("/settings/modes/new/", FORM)

    for page in ("/sessions/new/", "/settings/preferences/", "/settings/rules/new/"):
        assert "Reviewer" in page_of(client.get(page, follow=True)).words


def test_what_the_reach_says_becomes_the_list(client: Client) -> None:
    for name, reach, tools in (
        ("Every", "every", None),
        ("Plans", "planning", ["Read", "ExitPlanMode"]),
        ("Chosen", "chosen", ["Read", "EnterPlanMode", "Write", "ExitPlanMode"]),
    ):
        chosen = ["Read", "EnterPlanMode", "Write"]
        form = {**FORM, "name": name, "reach": reach, "tools": chosen}
        assert client.post("/settings/modes/new/", form).status_code == 302
        mode = Mode.objects.get(name=name)
        assert mode.tools == tools
        page = page_of(client.get(f"/settings/modes/{mode.pk}/"))
        checked = page.find(f"id_reach_{['every', 'chosen', 'planning'].index(reach)}")
        assert "checked" in checked.attributes


def test_a_mode_in_use_says_why_it_stays(client: Client, alice: User) -> None:
    client.post("/settings/modes/new/", FORM)
    mode = Mode.objects.get(slug="reviewer")
    factories.make_session(alice, mode="reviewer")

    words = page_of(client.get(f"/settings/modes/{mode.pk}/")).words
    assert "1 open session is in this mode." in words
    refused = client.post(f"/settings/modes/{mode.pk}/delete/", follow=True)
    assert "It can't be deleted" in page_of(refused).words
    assert Mode.objects.filter(slug="reviewer").exists()


def test_a_built_in_mode_is_duplicated_and_not_edited(client: Client) -> None:
    plan = Mode.objects.get(slug="plan")

    assert client.get(f"/settings/modes/{plan.pk}/").status_code == 404
    page = page_of(client.get(f"/settings/modes/new/?like={plan.pk}"))
    assert page.find("id_name").attributes["value"] == "Plan (copy)"
    assert "checked" in page.find("id_reach_2").attributes
    assert client.get("/settings/modes/new/?like=x").status_code == 404


def test_owners_make_modes_for_everybody(sign_in: SignIn) -> None:
    boss = sign_in(factories.make_user("boss", role=Role.OWNER))
    member = sign_in(factories.make_user("bob"))
    form = {**FORM, "tools": ["Read"], "for_everybody": "on"}

    assert boss.post("/settings/modes/new/", form).status_code == 302
    mode = Mode.objects.get(slug="reviewer")
    assert mode.owner is None
    assert "Reviewer" in page_of(member.get("/settings/modes/")).words
    assert member.get(f"/settings/modes/{mode.pk}/").status_code == 404
    assert boss.get(f"/settings/modes/{mode.pk}/").status_code == 200
    member.post("/settings/modes/new/", {**form, "name": "Own"})
    assert Mode.objects.get(name="Own").owner is not None


def test_viewers_see_modes_and_make_none(sign_in: SignIn) -> None:
    viewer = sign_in(factories.make_user("viewer", role=Role.VIEWER))

    assert "New mode" not in page_of(viewer.get("/settings/modes/")).words
    assert viewer.post("/settings/modes/new/", FORM).status_code == 403


def test_what_was_wrong_is_said_at_its_field(client: Client) -> None:
    wrong = {**FORM, "color": "red", "default_next_mode": ""}

    refused = client.post("/settings/modes/new/", wrong)

    assert refused.status_code == 422
    assert "Choose a colour." in page_of(refused).words
