"""Rows for tests, made the way the application makes them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from agents.domain import blocks, runs
from agents.domain.approvals import open_approval
from agents.domain.sessions import LaunchConfig, launch_agent
from agents.models import (
    AgentSession,
    ApprovalRequest,
    Message,
    Run,
    TranscriptEntry,
    User,
)
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.users import Role


def make_user(name: str, **fields: Any) -> User:
    fields.setdefault("role", Role.MEMBER)
    return User.objects.create_user(username=name, password="correct horse", **fields)


def make_session(
    owner: User, task: str = "Count to three", **config: Any
) -> AgentSession:
    """A session as "Start agent" makes it: its first message sent, its run queued."""
    return launch_agent(owner, LaunchConfig(task=task, **config))


def start_turn(session: AgentSession) -> Run:
    """Claim the session's queued run, as a worker does."""
    run = session.runs.unfinished().get()
    claimed = runs.claim_run(run.pk, "test-worker")
    assert claimed is not None
    runs.mark_running(claimed, model_actual="claude-test", jailed=True)
    return claimed


def remember(run: Run) -> None:
    """Let the model's own transcript hold the run's prompt and an answer."""
    TranscriptEntry.objects.bulk_create(
        TranscriptEntry(
            project_key="test",
            sdk_session_id=str(run.branch.sdk_session_id),
            uuid=str(entry_id),
            type=kind,
            entry="{}",
        )
        for kind, entry_id in (("user", uuid4()), ("assistant", uuid4()))
    )


def end_turn(run: Run, **outcome: Any) -> None:
    outcome.setdefault("stop_reason", "no_tool_calls")
    runs.finish_run(run, runs.RunOutcome(**outcome))


def say(run: Run, text: str, role: MessageRole = MessageRole.ASSISTANT) -> Message:
    """A finished block of the agent."""
    message = blocks.start_stream(run, role=role)
    blocks.finish_stream(message.pk, text=text)
    message.refresh_from_db()
    return message


def call_tool(
    run: Run,
    tool_use_id: str = "toolu_1",
    tool_name: str = "Bash",
    tool_input: dict[str, Any] | None = None,
    **fields: Any,
) -> Message:
    return blocks.record_tool_call(
        run,
        tool_use_id=tool_use_id,
        tool_name=tool_name,
        tool_input=tool_input or {"command": "ls -la"},
        **fields,
    )


def return_result(
    run: Run, tool_use_id: str = "toolu_1", text: str = "total 0", **fields: Any
) -> Message:
    fields.setdefault("outcome", ToolOutcome.OK)
    return blocks.record_tool_result(run, tool_use_id=tool_use_id, text=text, **fields)


def ask_approval(
    run: Run,
    tool_use_id: str = "toolu_1",
    tool_name: str = "Write",
    tool_input: dict[str, Any] | None = None,
    **fields: Any,
) -> ApprovalRequest:
    """A tool call with the request that waits for a person."""
    if tool_input is None:
        tool_input = {"file_path": "/srv/hello.txt", "content": "Hello\n"}
    call_tool(run, tool_use_id, tool_name, tool_input)
    return open_approval(
        run,
        tool_use_id=tool_use_id,
        tool_name=tool_name,
        tool_input=tool_input,
        reason="Writing asks in this security mode.",
        **fields,
    )


QUESTION = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "multiSelect": False,
            "options": [
                {"label": "Red", "description": "Like a rose"},
                {"label": "Blue", "description": "Like the sea"},
            ],
        },
        {
            "question": "Which fruits?",
            "header": "Fruits",
            "multiSelect": True,
            "options": [
                {"label": "Apple", "description": ""},
                {"label": "Pear", "description": ""},
            ],
        },
    ]
}


def ask_question(run: Run, tool_use_id: str = "toolu_q") -> ApprovalRequest:
    return ask_approval(run, tool_use_id, "AskUserQuestion", QUESTION)
