"""Servers as rows: names, secrets, what is found, and what a session is offered."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from agents.domain import mcp_discovery, mcp_servers, permissions, sessions
from agents.domain.mcp_import import read_servers
from agents.domain.mcp_offers import offered_servers
from agents.errors import InvalidInputError
from agents.models import AgentSession, McpServer, Run, User
from agents.models.mcp_servers import McpStatus
from agents.models.users import Role
from agents.policy.decision import PolicyContext, ToolCall, Verdict, decide
from agents.policy.modes import Effect
from agents.policy.tools import find_tool
from tests import factories
from tests.mcp.rows import (
    READS,
    discover,
    found,
    make_server,
    notes_server,
    set_policy,
    tool,
)

READ, WRITE = "mcp__notes__read", "mcp__notes__write"


def context_of(session: AgentSession) -> PolicyContext:
    around = permissions.surroundings_of(session.pk, jailed=True)
    return permissions.policy_context(session.pk, around)


def verdict(session: AgentSession, name: str) -> Verdict:
    return decide(ToolCall(name, {}), context_of(session))


def offered(session: AgentSession) -> set[str]:
    """Of the servers that people connected."""
    names = permissions.offered_tools(session)
    foreign = {name for name in names if name.startswith("mcp__")}
    return {name for name in foreign if not find_tool(name)}


# Names and secrets


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("GitHub (work)", "github-work"),
        ("Ärger__mit Namen", "rger-mit-namen"),
        ("x" * 50, "x" * 32),
    ],
)
def test_tools_are_named_after_their_server(name: str, slug: str) -> None:
    assert mcp_servers.slug_of(name) == slug


@pytest.mark.parametrize("name", ["!!!", "OpenSwarm tasks", "openswarm", "Notes"])
def test_some_names_are_refused(alice: User, name: str) -> None:
    make_server(alice)

    with pytest.raises(InvalidInputError) as refused:
        make_server(alice, name)

    assert refused.value.field == "name"


def test_a_new_name_keeps_the_names_of_the_tools(alice: User) -> None:
    server = notes_server(alice)

    server.name = "Diary"
    mcp_servers.save_server(server, alice, secrets={})

    assert tool(server, "read").full_name == READ


def test_secrets_are_encrypted_and_never_audited(alice: User) -> None:
    server = make_server(
        alice, secrets={"Authorization": "Bearer s3cret"}, url="https://x.test/?key=k3y"
    )

    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM agents_mcpserver")
        raw = repr(cursor.fetchall())
        cursor.execute("SELECT * FROM agents_auditentry")
        audited = repr(cursor.fetchall())
    assert "mcp_server.created" in audited
    for secret in ("s3cret", "k3y"):
        assert secret not in raw + audited
        assert secret not in repr(mcp_servers.spec_of(server))
    server.refresh_from_db()
    assert server.secret_values == {"Authorization": "Bearer s3cret"}
    assert server.shown_url == "https://x.test/?…"


def test_what_owners_grant_ends_with_their_being_owners(alice: User) -> None:
    alice.role = Role.OWNER
    alice.save()
    server = make_server(
        alice, transport="stdio", command="x", network="open", folders=["/usr"]
    )

    granted = mcp_servers.spec_of(server)
    alice.role = Role.MEMBER
    alice.save()
    later = mcp_servers.connection_spec(server.pk)

    assert (granted.has_network, len(granted.folders)) == (True, 1)
    assert later is not None
    assert (later.has_network, later.folders, later.may_be_private) == (
        False,
        (),
        False,
    )


# What is found


def test_what_is_found_is_kept_with_its_policies(alice: User) -> None:
    server = notes_server(alice)
    set_policy(server, "write", "deny", alice)

    discover(server, found("read", **READS))
    gone = [each.is_listed for each in server.tools.all()]
    discover(server, found("read", **READS), found("write"))

    assert gone == [True, False]
    assert [each.policy for each in server.tools.all()] == ["ask", "deny"]
    assert all(each.is_listed for each in server.tools.all())


@pytest.mark.parametrize(
    "other",
    [
        found("read", description="Now it sends mails.", **READS),
        found("read"),
        found("read", input_schema={"type": "object", "required": ["to"]}, **READS),
    ],
)
def test_a_tool_that_becomes_another_one_asks_again(
    alice: User, other: mcp_discovery.FoundTool
) -> None:
    server = notes_server(alice)
    set_policy(server, "read", "always_allow", alice)

    discover(server, found("read", **READS))
    same = tool(server, "read").policy
    discover(server, other)

    assert (same, tool(server, "read").policy) == ("always_allow", "ask")


def test_names_get_the_letters_that_a_model_takes(alice: User) -> None:
    server = make_server(alice, tools=(found("a.b"), found("a b"), found("a_b")))

    names = {each.name: each.offered_name for each in server.tools.all()}
    discover(server, found("a b"), found("a/b"))

    assert names == {"a b": "a_b", "a.b": "a_b_2", "a_b": "a_b_3"}
    assert tool(server, "a b").offered_name == "a_b"
    assert tool(server, "a/b").offered_name == "a_b_4"


def test_an_older_connection_has_no_say(alice: User) -> None:
    server = notes_server(alice)
    old = server.generation

    mcp_servers.ask_anew(server)
    late = mcp_discovery.Report(McpStatus.ERROR, "It ended.")
    mcp_discovery.record_report(server.pk, old, late)

    server.refresh_from_db()
    assert (server.status, server.reason) == (McpStatus.CONNECTED, "")


def test_hostile_texts_are_cleaned_and_capped(alice: User) -> None:
    huge = {"type": "object", "description": "x" * 100_000}
    odd = found("odd", description="\x00\ud800" + "y" * 10_000)
    server = make_server(alice, tools=(found("big", input_schema=huge), odd))

    kept = server.tools.get()

    assert kept.name == "odd"
    assert len(kept.description) == mcp_discovery.MAX_DESCRIPTION_CHARACTERS
    assert "\x00" not in kept.description


# What a session is offered


def test_a_session_is_offered_its_owners_and_the_sites_tools(
    session: AgentSession, alice: User, bob: User
) -> None:
    notes_server(alice)
    make_server(bob, "Bobs", tools=(found("x"),))
    make_server(bob, "Site", owner=None, tools=(found("y"),))

    assert offered(session) == {READ, WRITE, "mcp__site__y"}
    assert [server.slug for server in offered_servers(session)] == ["notes", "site"]


def test_ones_own_server_stands_before_the_sites_of_the_same_name(
    session: AgentSession, alice: User, bob: User
) -> None:
    make_server(bob, owner=None, tools=(found("theirs"),))
    own = notes_server(alice)

    (server,) = offered_servers(session)

    assert server.server_id == own.pk


def test_asking_is_the_default_and_classes_come_from_annotations(
    session: AgentSession, alice: User, override_conf: Any
) -> None:
    notes_server(alice)
    override_conf(sandbox_network_reads=True)

    asked = [verdict(session, name).effect for name in (READ, WRITE)]
    sessions.update_session(session, alice, security_mode="sandbox")
    reading = [verdict(session, name).effect for name in (READ, WRITE)]

    assert asked == [Effect.ASK, Effect.ASK]
    assert reading == [Effect.ALLOW, Effect.DENY]


def test_a_policy_holds_for_its_tool_alone(session: AgentSession, alice: User) -> None:
    server = notes_server(alice)

    set_policy(server, "read", "always_allow", alice)
    set_policy(server, "write", "deny", alice)

    assert verdict(session, READ).effect is Effect.ALLOW
    assert verdict(session, WRITE).effect is Effect.DENY
    assert offered(session) == {READ}


def test_a_server_whose_tools_are_all_denied_is_not_offered(
    session: AgentSession, alice: User
) -> None:
    server = notes_server(alice)

    for name in ("read", "write"):
        set_policy(server, name, "deny", alice)

    assert offered_servers(session) == ()


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (["Read"], set()),
        (["Read", WRITE], {WRITE}),
        (["mcp__notes"], {READ, WRITE}),
        (["mcp:notes"], {READ, WRITE}),
    ],
)
def test_a_mode_leaves_only_what_it_names(
    session: AgentSession, alice: User, tools: list[str], expected: set[str]
) -> None:
    notes_server(alice)
    session.allowed_tools = tools
    session.save()

    assert offered(session) == expected
    assert verdict(session, READ).effect is (
        Effect.ASK if READ in expected else Effect.DENY
    )


@pytest.mark.parametrize("how", ["session", "switch", "mode", "credentials"])
def test_what_is_off_is_not_offered(
    session: AgentSession, alice: User, how: str
) -> None:
    server = notes_server(alice)

    match how:
        case "session":
            sessions.update_session(session, alice, mcp_servers_off=[str(server.pk)])
        case "switch":
            McpServer.objects.update(is_enabled=False)
        case "mode":
            sessions.update_session(session, alice, security_mode="deny")
        case "credentials":
            McpServer.objects.update(status=McpStatus.NEEDS_AUTH)

    session.refresh_from_db()
    assert offered(session) == set()
    assert verdict(session, READ).effect is Effect.DENY


def test_below_asking_people_allow_nothing_by_themselves(
    session: AgentSession, alice: User
) -> None:
    server = notes_server(alice)
    set_policy(server, "read", "always_allow", alice)
    sessions.update_session(session, alice, security_mode="allowlist")
    before = verdict(session, READ).effect
    alice.security_ceiling = "allowlist"
    alice.save()
    server = McpServer.objects.get()

    after = verdict(session, READ).effect

    assert (before, after) == (Effect.ALLOW, Effect.DENY)
    with pytest.raises(InvalidInputError, match="without asking"):
        set_policy(server, "write", "always_allow", alice)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("policy", "status"), [("always_allow", "approved"), ("deny", "denied")]
)
def test_a_policy_answers_what_waits(run: Run, alice: User, policy, status) -> None:
    server = notes_server(alice)
    waiting = factories.ask_approval(run, "toolu_1", WRITE, {})

    set_policy(server, "write", policy, alice)

    waiting.refresh_from_db()
    assert waiting.status == status


@pytest.mark.django_db(transaction=True)
def test_calls_of_a_deleted_server_are_refused(run: Run, alice: User) -> None:
    server = notes_server(alice)
    waiting = factories.ask_approval(run, "toolu_1", WRITE, {})

    mcp_servers.delete_server(server, alice)

    waiting.refresh_from_db()
    assert waiting.status == "denied"


# Pasted JSON


def test_the_usual_json_is_read() -> None:
    drafts = read_servers(
        """{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "pkg"], "env": {"A": "b"}},
            "far": {"url": "https://x.test/mcp", "headers": {"X-Key": "k"}},
            "old": {"type": "sse", "url": "https://x.test/sse", "disabled": true}
        }}"""
    )

    files, far, old = drafts
    assert (files.transport, files.command, files.arguments) == (
        "stdio",
        "npx",
        ["-y", "pkg"],
    )
    assert files.secrets == {"A": "b"}
    assert (far.transport, far.url, far.secrets) == (
        "http",
        "https://x.test/mcp",
        {"X-Key": "k"},
    )
    assert (old.transport, old.is_enabled) == ("sse", False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not valid JSON"),
        ("[]", "Expected"),
        ('{"mcpServers": {}}', "Expected"),
        ('{"a": 1}', "a: expected an object"),
        ('{"a": {"type": "carrier-pigeon"}}', "not a transport"),
        ('{"a": {"command": 5}}', "not a text"),
        ('{"a": {"command": "x", "args": "y"}}', "not a list"),
        ('{"a": {"command": "x", "env": ["y"]}}', "a text for each name"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_other_json_gets_a_sentence(text: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as refused:
        read_servers(text)

    assert refused.value.field == "json"
