"""What may be forced, and what a message becomes, without a CLI."""

from __future__ import annotations

from agents.domain import messages
from agents.execution.prompt_builder import build_prompt_content, session_tools
from agents.models import McpServer, Run, User
from tests.mcp.rows import notes_server


def test_connected_tools_can_be_forced_with_the_account_that_they_use(
    run: Run, alice: User
) -> None:
    server = notes_server(alice)
    McpServer.objects.filter(pk=server.pk).update(account_email="alice@example.org")

    notes = {note.name: note for note in session_tools(run.session)}

    read = notes["mcp__notes__read"]
    assert (read.description, read.server) == ("Does read.", "notes")
    assert read.account == "alice@example.org"
    assert notes["Read"].server == ""
    assert "Skill" not in notes


def test_what_was_never_heard_comes_with_its_own_attachments(
    run: Run, alice: User
) -> None:
    picture = {"name": "x.png", "media_type": "image/png", "data": "AAAA"}
    first = run.trigger_message
    first.attachments = {"context_paths": ["gone.txt"], "images": [picture]}
    first.save()
    second = messages.send_message(run.session, author=alice, text="And then?")
    second.delivered_at = second.queued_at
    second.save()
    run.trigger_message = second

    content = build_prompt_content(run)

    assert isinstance(content, list)
    text, image = content
    assert text["text"] == "\n\n".join(
        ["[Context: gone.txt — not found]", first.text, "And then?"]
    )
    assert image["source"] == {
        **{"type": "base64", "media_type": "image/png", "data": "AAAA"}
    }
