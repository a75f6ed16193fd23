"""The admin: read-only, audited, in a constant number of queries."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.domain import audit
from agents.domain.capability import capability_of, record_found
from agents.domain.memory import save_memory
from agents.domain.subagents import start_sub_agent
from agents.domain.tasks import create_task
from agents.domain.tokens import create_token
from agents.models import (
    AgentSession,
    ApprovalRequest,
    AuditEntry,
    Budget,
    CostEntry,
    ListedFolder,
    McpServer,
    Message,
    MessageBranch,
    ModelCapability,
    ModelRequest,
    PermissionRule,
    Provider,
    Run,
    SessionEvent,
    Ticket,
    TranscriptEntry,
    User,
)
from agents.models.capability import CapabilitySource
from agents.models.users import Role
from tests import factories
from tests.mcp.rows import notes_server
from tests.people import browser, person

WRITABLE = {User, ListedFolder, ModelCapability}
PRIVATE = [AgentSession, Message, ApprovalRequest, SessionEvent, TranscriptEntry]
MODELS = sorted(admin.site._registry, key=lambda model: model.__name__)


def url(model, page, *args) -> str:
    path = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
    return reverse(path, args=args)


@pytest.fixture
def olga(db):
    return person("olga", Role.OWNER)


@pytest.fixture
def client(olga):
    return browser(olga)


def fill(name: str) -> AgentSession:
    """One row of everything, each of somebody of their own."""
    owner = person(name)
    session = factories.make_session(owner, task=f"Task of {name}")
    run = factories.start_turn(session)
    approval = factories.ask_approval(run, tool_input={"file_path": f"/w/{name}"})
    provider = Provider.objects.create(owner=owner, name=name, kind="anthropic")
    facts = {"session": session, "user": owner, "run": run, "provider": provider}
    CostEntry.objects.create(message_id=f"msg_{name}", model="claude", **facts)
    Budget.objects.create(scope="user", user=owner, limit_usd_micros=1)
    PermissionRule.objects.create(
        owner=owner, scope="user", tool="Bash", effect="deny", created_from=approval
    )
    ModelCapability.objects.create(name=name, effort_levels=["low"])
    ListedFolder.objects.create(name=name, path=f"/srv/{name}", added_by=owner)
    task = create_task(owner, title=name)
    Ticket.objects.create(owner=owner, key=name, title=task.title)
    save_memory(owner, name, source_session=session)
    notes_server(owner, secrets={"Authorization": "Bearer mcp-s3cret"})
    create_token(owner, name=name, scopes=["read"], days=1)
    audit.record("rule.created", actor=owner, target=session, tool="Bash")
    branch = session.active_branch
    assert branch is not None
    TranscriptEntry.objects.create(
        project_key="p",
        sdk_session_id=str(branch.sdk_session_id),
        entry='{"text": "\\u0000 said"}',
        uuid=name,
    )
    return session


@pytest.mark.parametrize("model", MODELS)
def test_a_list_takes_the_same_number_of_queries_for_many(model, client):
    fill("anna")
    client.get(url(model, "changelist"))  # content types are looked up once
    with CaptureQueriesContext(connection) as one:
        assert client.get(url(model, "changelist")).status_code == 200
    fill("berta")
    fill("clara")

    with CaptureQueriesContext(connection) as three:
        client.get(url(model, "changelist"))

    assert len(three) == len(one)


@pytest.mark.parametrize("model", MODELS)
def test_each_row_has_a_page(model, client):
    fill("anna")
    row = model._default_manager.first()
    assert row is not None

    assert client.get(url(model, "change", row.pk)).status_code == 200


def test_a_session_takes_the_same_number_of_queries_whatever_happened(client):
    session = fill("anna")
    page = url(AgentSession, "change", session.pk)
    client.get(page)
    with CaptureQueriesContext(connection) as one:
        client.get(page)
    run = Run.objects.get(session=session)
    for number in range(2):
        factories.ask_approval(run, tool_use_id=f"toolu_more{number}")
        MessageBranch.objects.create(session=session)
    ApprovalRequest.objects.update(decided_by=session.owner)

    with CaptureQueriesContext(connection) as more:
        client.get(page)

    assert len(more) == len(one)


def test_a_session_shows_its_runs_approvals_and_branches(client):
    session = fill("anna")

    page = client.get(url(AgentSession, "change", session.pk)).text

    assert "claude-test" in page
    assert "Write" in page
    assert str(session.branches.get().sdk_session_id) in page
    assert f"session__id__exact={session.pk}" in page


@pytest.mark.parametrize("model", [model for model in MODELS if model not in WRITABLE])
def test_history_is_read_only(model, client):
    fill("anna")
    row = model._default_manager.first()
    assert row is not None
    before = model._default_manager.filter(pk=row.pk).values().get()

    answers = [
        client.post(url(model, "add"), {"name": "x"}).status_code,
        client.post(url(model, "change", row.pk), {"name": "x"}).status_code,
        client.post(url(model, "delete", row.pk), {"post": "yes"}).status_code,
    ]

    assert answers == [403, 403, 403]
    assert model._default_manager.filter(pk=row.pk).values().get() == before


def test_what_a_person_sets_of_a_model_stands(client, olga):
    record_found("llama-9", CapabilitySource.OBSERVED, context_window=8_000)
    row = ModelCapability.objects.get()
    data = {"name": "llama-9", "native_tools": "false", "context_window": "8000"}

    refused = client.post(
        url(ModelCapability, "change", row.pk), data | _levels("much")
    )
    done = client.post(
        url(ModelCapability, "change", row.pk), data | _levels("max,low")
    )

    assert (refused.status_code, done.status_code) == (200, 302)
    assert "There is no level “much”." in refused.text
    assert not record_found("llama-9", CapabilitySource.OBSERVED, native_tools=True)
    known = capability_of("llama-9")
    assert (known.native_tools, known.effort_levels) == (False, ("low", "max"))
    assert known.sources["native_tools"] == CapabilitySource.PERSON
    assert known.sources["context_window"] == CapabilitySource.OBSERVED
    page = client.get(url(ModelCapability, "change", row.pk)).text
    assert "native_tools: False (set by a person)" in page
    client.post(url(ModelCapability, "change", row.pk), data | _levels("none"))
    assert capability_of("llama-9").effort_levels == ()


def _levels(text: str) -> dict[str, str]:
    return {"effort_levels": text}


def test_requests_are_not_shown(db):
    assert ModelRequest not in admin.site._registry


@pytest.mark.parametrize("model", PRIVATE)
def test_each_look_at_what_people_said_is_audited(model, client, olga):
    fill("anna")
    row = model._default_manager.first()
    assert row is not None

    client.get(url(model, "change", row.pk))
    client.get(url(model, "changelist"), {"q": "anna"})

    viewed = AuditEntry.objects.get(action="admin.viewed")
    listed = AuditEntry.objects.get(action="admin.listed")
    assert (viewed.actor, viewed.target_id) == (olga, str(row.pk))
    assert viewed.target_type == model._meta.model_name
    assert listed.data == {"list": model._meta.model_name, "filter": "q=anna"}


@pytest.mark.parametrize(
    ("model", "query"),
    [
        (AgentSession, {"q": "anna"}),
        (AgentSession, {"status": "waiting_approval"}),
        (Message, {"q": "Task of anna"}),
        (ApprovalRequest, {"status": "pending", "q": "Write"}),
        (SessionEvent, {"q": "agent:"}),
        (CostEntry, {"q": "anna"}),
        (AuditEntry, {"action": "admin.listed"}),
        (TranscriptEntry, {"q": "anna"}),
        (User, {"role": "member"}),
    ],
)
def test_searches_and_filters_work(model, query, client):
    fill("anna")
    client.get(url(AgentSession, "changelist"))

    page = client.get(url(model, "changelist"), query)

    assert page.status_code == 200
    assert page.context["cl"].result_count > 0


@pytest.mark.parametrize("model", [Message, SessionEvent, CostEntry])
def test_a_sessions_rows_are_one_link_away(model, client):
    anna, berta = fill("anna"), fill("berta")

    page = client.get(url(model, "changelist"), {"session__id__exact": anna.pk})

    assert {row.session_id for row in page.context["cl"].result_list} == {anna.pk}
    assert berta.name not in page.text


def test_a_transcript_is_one_link_away(client):
    anna = fill("anna")
    fill("berta")
    sdk_id = str(anna.branches.get().sdk_session_id)

    page = client.get(
        url(TranscriptEntry, "changelist"), {"sdk_session_id__in": sdk_id}
    )

    assert [row.uuid for row in page.context["cl"].result_list] == ["anna"]


def test_json_is_laid_out_and_harmless(client):
    session = fill("anna")
    run = Run.objects.get(session=session)
    hostile = {"command": "<script>alert(1)</script>\u202e\x1b[31m"}
    approval = factories.ask_approval(run, "toolu_x", "Bash", hostile)

    page = client.get(url(ApprovalRequest, "change", approval.pk)).text

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert(1)" not in page
    assert "\u202e" not in page
    assert '<pre class="inspected">{\n  &quot;command&quot;:' in page


def test_a_huge_message_does_not_fill_the_page(client):
    session = fill("anna")
    message = Message.objects.filter(session=session).first()
    assert message is not None
    Message.objects.filter(pk=message.pk).update(text="x" * 3_000_000)

    page = client.get(url(Message, "change", message.pk)).text

    assert len(page) < 1_000_000
    assert "… (cut)" in page


def act(client, action, *sessions):
    return client.post(
        url(AgentSession, "changelist"),
        {"action": action, "_selected_action": [session.pk for session in sessions]},
        follow=True,
    )


def test_stop_asks_the_run_to_stop(client, olga):
    running, resting = fill("anna"), fill("berta")
    factories.end_turn(Run.objects.get(session=resting))

    page = act(client, "stop", running, resting)

    assert "1 of 2 were at work." in page.text
    assert Run.objects.get(session=running).stop_requested_at is not None
    assert Run.objects.get(session=resting).stop_requested_at is None
    entry = AuditEntry.objects.get(action="session.stopped")
    assert (entry.actor, entry.target_id) == (olga, str(running.pk))


def test_close_puts_the_sessions_away(client, olga):
    session = fill("anna")

    act(client, "close", session)

    session.refresh_from_db()
    assert session.closed_at is not None
    assert AuditEntry.objects.get(action="session.closed").actor == olga


def test_a_sub_agents_rows_are_one_link_away_and_it_closes_with_its_session(
    client, olga
):
    session = fill("alice")
    run = session.runs.get()
    factories.call_tool(run, "toolu_a", "Agent", {"prompt": "Count the bees"})
    factories.call_tool(run, "toolu_b", parent_tool_use_id="toolu_a")
    child = start_sub_agent(run, tool_use_id="toolu_a", agent_id="a1")
    page = client.get(url(AgentSession, "change", child.pk)).text
    rows = {
        "session__id__exact": session.pk,
        "parent_tool_use_id__exact": "toolu_a",
    }
    listed = client.get(url(Message, "changelist"), rows)

    assert urlencode(rows).replace("&", "&amp;") in page
    assert [row.tool_use_id for row in listed.context["cl"].result_list] == ["toolu_b"]
    chosen = {"action": "close", "_selected_action": [child.pk, session.pk]}
    client.post(url(AgentSession, "changelist"), chosen)
    child.refresh_from_db()
    assert child.closed_at is not None


def test_somebody_without_a_login_signs_in_on_our_page(db):
    client = browser()

    page = client.get("/admin/agents/user/")
    form = client.get("/admin/login/?next=/admin/agents/user/")

    assert page["Location"] == "/login/?next=/admin/agents/user/"
    assert form["Location"] == "/login/?next=/admin/agents/user/"


def test_the_admin_takes_no_passwords_itself(olga):
    """Django's form would let them be guessed without our limit."""
    client = browser()

    client.post("/admin/login/", {"username": "olga", "password": "correct horse"})

    assert "_auth_user_id" not in client.session


def test_credentials_of_mcp_servers_are_not_shown(client):
    fill("anna")
    server = McpServer.objects.get()

    page = client.get(url(McpServer, "change", server.pk)).text

    assert server.secret_values == {"Authorization": "Bearer mcp-s3cret"}, "the control"
    assert "mcp-s3cret" not in page
