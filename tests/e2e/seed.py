"""Rows that no test waits for an agent to write; run by `manage.py shell`."""

from __future__ import annotations

from uuid import UUID

from agents.models import AgentSession, Message
from agents.models.messages import MessageRole, ToolOutcome
from agents.rendering.markdown import render_markdown

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>"
    "\u202egnp.exe\u202c \u200bzero \x1b[31mred\x1b[0m"
)


def add_messages(session_id: str, count: int) -> None:
    """A long conversation, each message with its number."""
    session = AgentSession.objects.get(pk=UUID(session_id))
    rows = []
    for number in range(1, count + 1):
        is_user = number % 2
        text = f"message number {number} of the long one"
        rows.append(
            _message(
                session,
                number,
                role=MessageRole.USER if is_user else MessageRole.ASSISTANT,
                text=text,
                rendered_html="" if is_user else render_markdown(text),
            )
        )
    _save(session, rows)


def add_big_result(session_id: str, size: int) -> None:
    """A Bash call whose output is hostile, has one endless line, and is `size` long."""
    session = AgentSession.objects.get(pk=UUID(session_id))
    line = "x" * (1024 * 1024)
    text = f"{HOSTILE}\n{line}\n"
    text += "filler line\n" * ((size - len(text)) // 12) + "END-OF-RESULT"
    call = {"tool_name": "Bash", "tool_use_id": "toolu_big"}
    _save(
        session,
        [
            _message(
                session,
                1,
                role=MessageRole.TOOL_CALL,
                content={"input": {"command": f"cat {HOSTILE}"}},
                **call,
            ),
            _message(
                session,
                2,
                role=MessageRole.TOOL_RESULT,
                text=text,
                outcome=ToolOutcome.OK,
                **call,
            ),
        ],
    )


def _message(session: AgentSession, number: int, **columns: object) -> Message:
    assert session.active_branch_id is not None
    return Message(
        session=session,
        branch_id=session.active_branch_id,
        seq=session.last_message_seq + number,
        **columns,
    )


def _save(session: AgentSession, rows: list[Message]) -> None:
    Message.objects.bulk_create(rows, batch_size=200)
    session.last_message_seq += len(rows)
    session.save(update_fields=["last_message_seq"])
