"""A session as Markdown and as data: all branches, decisions and costs."""

from __future__ import annotations

import json

from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.domain import blocks
from agents.domain.export import export_json, export_session
from agents.domain.export_markdown import export_markdown
from agents.models import AgentSession, CostEntry, Message, MessageBranch
from agents.models.approvals import ApprovalStatus
from tests import factories


def test_nothing_of_this_machine_is_in_the_data(run):
    session = run.session
    factories.say(run, "Hello")

    text = export_json(session)

    assert session.cwd not in text
    assert str(session.owner_id) not in text
    for branch in session.branches.all():
        assert str(branch.sdk_session_id) not in text
    assert "rendered_html" not in text


def test_the_data_holds_each_row_once(run):
    factories.ask_approval(run)
    factories.return_result(run)
    CostEntry.objects.create(message_id="m", model="x", session=run.session)

    data = json.loads(export_json(run.session))

    sizes = {
        name: len(data[name]) for name in ("messages", "runs", "approvals", "costs")
    }
    assert sizes == {"messages": 3, "runs": 1, "approvals": 1, "costs": 1}
    assert data["costs"][0]["usd_micros"] is None, "unknown is not free"
    assert [data["format"], data["version"]] == ["openswarm-session", 1]


def test_it_takes_the_same_queries_however_long_the_session_is(run):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            export_session(run.session)
        return len(captured)

    before = queries()
    for at in range(5):
        factories.call_tool(run, f"toolu_{at}")
        factories.return_result(run, f"toolu_{at}")

    assert queries() == before == 5


def test_markdown_reads_from_top_to_bottom(run, alice):
    session = run.session
    factories.say(run, "## Mine\n\nI *think* so.")
    approval = factories.ask_approval(run, tool_input={"file_path": "a.txt"})
    approval.status = ApprovalStatus.DENIED
    approval.decided_by = alice
    approval.message = "Not\nthere"
    approval.save()
    factories.return_result(run, text="a ```` fence", outcome="denied")
    AgentSession.objects.filter(pk=session.pk).update(
        cost_usd_micros=1_500_000, cost_is_partial=True
    )
    session.refresh_from_db()

    text = export_markdown(session)

    headings = [line.split(",")[0] for line in text.splitlines() if line[:4] == "### "]
    assert headings == [
        "### 1. alice",
        "### 2. Agent",
        "### 3. Tool call: Write",
        "### 4. Tool result: Write (denied)",
    ]
    assert "- Cost: at least $1.50" in text
    assert "- Model: claude-test" in text
    assert "I *think* so." in text
    assert '```json\n{\n  "file_path": "a.txt"\n}\n```' in text
    assert "*Denied by alice: Not there*" in text
    assert "`````\na ```` fence\n`````" in text
    assert "Branch" not in text


def test_markdown_shows_every_branch_and_where_it_begins(run):
    session = run.session
    said = factories.say(run, "First way")
    other = MessageBranch.objects.create(
        session=session, parent_branch=run.branch, fork_point_message=said
    )
    Message.objects.create(
        session=session,
        branch=other,
        seq=9,
        role="user",
        text="Second way",
        attachments={"context_paths": [{"path": "a.py"}], "images": [{}]},
        is_interrupted=True,
    )
    session.active_branch = other

    text = export_markdown(session)

    assert text.index("## Branch 1\n") < text.index("First way")
    assert text.index("First way") < text.index("## Branch 2 (shown)")
    assert "Goes on from branch 1, in place of its message 2." in text
    assert text.index("## Branch 2") < text.index("Second way")
    assert "- Attached context paths: a.py" in text
    assert "*1 image(s), in the JSON export.*" in text
    assert "*Stopped here.*" in text


def test_markdown_shows_what_ran_and_what_the_model_wrote(run):
    factories.call_tool(run, tool_input={"command": "echo before"})
    blocks.record_edit(
        run,
        tool_use_id="toolu_1",
        tool_name="Bash",
        tool_input={"command": "echo after"},
        original={"command": "echo before"},
        edited_by="anna",
    )

    text = export_markdown(run.session)

    ran, _, wrote = text.partition("The model wrote:")
    assert "echo after" in ran
    assert "echo before" not in ran
    assert "echo before" in wrote


def test_hidden_messages_stay_out_of_the_markdown(run):
    hidden = factories.say(run, "Not for eyes")
    Message.objects.filter(pk=hidden.pk).update(hidden=True)

    assert "Not for eyes" not in export_markdown(run.session)
