"""Settings → MCP servers: forms whose secrets never come back, the list, policies."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import AuditEntry, McpServer, User
from agents.models.users import Role
from agents.web.forms.mcp_servers import DOTS
from tests import factories
from tests.mcp.http_server import Site, far_server
from tests.mcp.rows import found, make_server, notes_server, tool

SignIn = Callable[[User], Client]
ADDRESS = {
    "name": "Far",
    "transport": "http",
    "url": "http://[2606:4700::1111]/mcp?k=v",
    "headers": "Authorization: Bearer s3cret\nX-Team: blue",
    "is_enabled": "on",
}
PROGRAM = {
    "name": "Files",
    "transport": "stdio",
    "command_line": "npx -y 'some package'",
    "environment": "TOKEN=s3cret=",
    "is_enabled": "on",
}


@pytest.fixture
def owner(db: None) -> User:
    return factories.make_user("olivia", role=Role.OWNER)


def add(client: Client, **form: str) -> McpServer:
    response = client.post(reverse("mcp_server_new"), form)
    assert response.status_code == 302, response.text
    return McpServer.objects.get(name=form["name"])


def test_an_address_is_added_with_its_headers(alice: User, sign_in: SignIn) -> None:
    server = add(sign_in(alice), **ADDRESS)

    assert (server.owner, server.slug, server.status) == (alice, "far", "untested")
    assert server.secret_values == {
        "Authorization": "Bearer s3cret",
        "X-Team": "blue",
    }
    assert server.is_enabled


def test_a_program_is_added_with_its_environment(owner: User, sign_in: SignIn) -> None:
    server = add(sign_in(owner), **PROGRAM, folders="/usr/share", network="on")

    assert (server.command, server.arguments) == ("npx", ["-y", "some package"])
    assert server.secret_values == {"TOKEN": "s3cret="}
    assert (server.network, server.folders) == ("open", ["/usr/share"])


def test_members_grant_no_network_no_folders_and_share_nothing(
    alice: User, sign_in: SignIn
) -> None:
    server = add(
        sign_in(alice), **PROGRAM, folders="/usr", network="on", is_shared="on"
    )

    assert (server.network, server.folders, server.owner) == ("none", [], alice)


def test_viewers_add_nothing(db: None, sign_in: SignIn) -> None:
    viewer = factories.make_user("vera", role=Role.VIEWER)

    response = sign_in(viewer).post(reverse("mcp_server_new"), ADDRESS)

    assert response.status_code == 403
    assert not McpServer.objects.exists()


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"url": ""}, "url", "needs it"),
        ({"url": "ftp://x.test"}, "url", "begins with https"),
        ({"url": "http://127.0.0.1:1/mcp"}, "url", "private address"),
        ({"url": "https://me:pw@x.test/"}, "url", "own field"),
        ({"headers": "no colon"}, "headers", "has no “:”"),
        ({"headers": "Bad name: x"}, "headers", "not a usable name"),
        ({"headers": "X-A: ä"}, "headers", "no header takes"),
        ({"headers": f"X-A: {DOTS}"}, "headers", "no stored value"),
        ({"name": "OpenSwarm"}, "name", "OpenSwarm’s own"),
        ({**PROGRAM, "command_line": ""}, "command_line", "needs it"),
        ({**PROGRAM, "command_line": "a 'b"}, "command_line", "not closed"),
        ({**PROGRAM, "environment": "1A=x"}, "environment", "not a usable name"),
        ({**PROGRAM, "environment": "LD_PRELOAD=x"}, "environment", "can’t be set"),
    ],
)
def test_what_cannot_work_is_said_at_its_field(
    alice: User, sign_in: SignIn, change: dict[str, str], field: str, words: str
) -> None:
    response = sign_in(alice).post(reverse("mcp_server_new"), ADDRESS | change)

    assert response.status_code == 422
    assert words in response.context["form"].errors[field][0]
    assert not McpServer.objects.exists()


@pytest.mark.parametrize("folder", ["relative", "/no/such/folder"])
def test_only_folders_are_shown_to_a_program(
    owner: User, sign_in: SignIn, folder: str
) -> None:
    form = {**PROGRAM, "folders": folder}

    response = sign_in(owner).post(reverse("mcp_server_new"), form)

    assert response.status_code == 422
    assert "full path of a folder" in response.text


def test_the_sites_own_data_are_shown_to_no_program(
    owner: User, sign_in: SignIn, settings
) -> None:
    for folder in (settings.DATA_DIR, settings.DATA_DIR.parent):
        form = {**PROGRAM, "folders": str(folder)}
        response = sign_in(owner).post(reverse("mcp_server_new"), form)
        assert "own data" in response.text


def test_secrets_never_come_back_and_dots_keep_them(
    alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    server = add(client, **ADDRESS)
    edit = reverse("mcp_server_edit", args=[server.pk])
    pages = [reverse("mcp_server_list"), reverse("mcp_server_detail", args=[server.pk])]

    shown = [client.get(url).text for url in (*pages, edit)]
    headers = f"Authorization: {DOTS}\nX-Team: red"
    client.post(edit, {**ADDRESS, "headers": headers})

    assert not [page for page in shown if "s3cret" in page]
    assert f"Authorization: {DOTS}" in shown[-1]
    server.refresh_from_db()
    assert server.secret_values == {"Authorization": "Bearer s3cret", "X-Team": "red"}


def test_another_kind_of_server_keeps_no_secret_of_the_old(
    alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    server = add(client, **ADDRESS)
    form = {**PROGRAM, "environment": f"Authorization={DOTS}"}

    response = client.post(reverse("mcp_server_edit", args=[server.pk]), form)

    assert response.status_code == 422
    assert "no stored value" in response.text


def test_pasted_json_adds_all_or_none(alice: User, sign_in: SignIn) -> None:
    client = sign_in(alice)
    good = {"url": "http://[2606:4700::1111]/mcp", "headers": {"X-Key": "k"}}
    files = {"command": "npx", "args": ["-y", "a b"], "env": {"A": "b"}}
    url = reverse("mcp_server_import")

    text = json.dumps({"mcpServers": {"far": good, "bad": {"command": ""}}})
    refused = client.post(url, {"json": text})
    none = McpServer.objects.count()
    text = json.dumps({"mcpServers": {"far": good, "files": files}})
    added = client.post(url, {"json": text})

    assert refused.status_code == 422
    assert "bad: This kind of server needs it." in refused.text
    assert (none, added.status_code) == (0, 302)
    far, program = McpServer.objects.order_by("name")
    assert far.secret_values == {"X-Key": "k"}
    assert (program.command, program.arguments) == ("npx", ["-y", "a b"])


@pytest.mark.django_db(transaction=True)
def test_testing_finds_the_tools_and_retry_a_reason(
    transactional_db: None, sign_in: SignIn
) -> None:
    owner = factories.make_user("olivia", role=Role.OWNER)
    client = sign_in(owner)
    with far_server(Site(token="t0ken")) as site:
        headers = {"Authorization": "Bearer t0ken"}
        server = make_server(owner, "Far", url=site.url, secrets=headers)
        url = reverse("mcp_server_test", args=[server.pk])

        works = client.post(url, follow=True)
        site.status = 500
        broken = client.post(url, follow=True)

    assert "works and has 2 tools" in works.text
    assert "Looks" not in works.text
    assert "Look something up." in works.text
    assert "HTTP 500" in broken.text
    assert "Retry" in broken.text
    assert server.tools.count() == 2


def test_policies_are_set_and_audited(alice: User, sign_in: SignIn) -> None:
    server = notes_server(alice)
    read, write = tool(server, "read"), tool(server, "write")
    url = reverse("mcp_server_policies", args=[server.pk])

    sign_in(alice).post(url, {f"policy-{read.pk}": "always_allow"})

    assert tool(server, "read").policy == "always_allow"
    assert tool(server, "write").policy == write.policy == "ask"
    assert AuditEntry.objects.get(action="mcp_server.policies").data == {
        "read": "always_allow"
    }


def test_a_limit_below_asking_is_said_at_the_policies(
    alice: User, sign_in: SignIn
) -> None:
    alice.security_ceiling = "allowlist"
    alice.save()
    server = notes_server(alice)
    read = tool(server, "read")
    url = reverse("mcp_server_policies", args=[server.pk])

    response = sign_in(alice).post(url, {f"policy-{read.pk}": "always_allow"})

    assert response.status_code == 422
    assert "without asking" in response.text


def test_everybody_sees_the_sites_servers_and_only_owners_change_them(
    alice: User, owner: User, sign_in: SignIn
) -> None:
    server = make_server(owner, "Site", owner=None, tools=(found("x"),))
    client = sign_in(alice)
    edit = reverse("mcp_server_edit", args=[server.pk])

    listed = client.get(reverse("mcp_server_list")).text
    shown = client.get(reverse("mcp_server_detail", args=[server.pk])).text

    assert "Site" in listed
    assert "Save policies" not in shown
    assert client.get(edit).status_code == 404
    assert sign_in(owner).get(edit).status_code == 200


def test_the_list_takes_as_many_queries_for_three_as_for_one(
    alice: User, sign_in: SignIn, django_assert_num_queries
) -> None:
    client = sign_in(alice)
    url = reverse("mcp_server_list")
    notes_server(alice)
    client.get(url)
    with django_assert_num_queries(12, exact=False) as one:
        client.get(url)
    for name in ("B", "C"):
        notes_server(alice, name=name)

    with django_assert_num_queries(len(one)):
        client.get(url)


def test_hostile_words_of_a_server_are_escaped(alice: User, sign_in: SignIn) -> None:
    hostile = found("<b>x", description="<script>alert(1)</script>\u202e")
    server = make_server(alice, tools=(hostile,))

    page = sign_in(alice).get(reverse("mcp_server_detail", args=[server.pk])).text

    assert "<script>alert" not in page
    assert "<b>x" not in page
    assert "\u202e" not in page


def test_a_session_is_started_without_a_server(alice: User, sign_in: SignIn) -> None:
    server = notes_server(alice)
    client = sign_in(alice)
    form = {
        "task": "Hello",
        "mode": "agent",
        "effort": "medium",
        "security_mode": "ask",
        "network": "none",
        "mcp_servers_off": str(server.pk),
    }

    shown = client.get(reverse("session_new")).text
    client.post(reverse("session_new"), form)

    assert "Without these MCP servers" in shown
    assert alice.sessions.get().mcp_servers_off == [str(server.pk)]
