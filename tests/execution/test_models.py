"""What the model is sent, by what is known of it: one engine, several models."""

from __future__ import annotations

from typing import Any

import pytest

from agents.demo.server import DemoServer
from agents.demo.state import RecordedRequest
from agents.domain import messages, sessions
from agents.domain.capability import alias_table, capability_of, record_found
from agents.domain.queries.sessions import load_page
from agents.execution.engine import Engine
from agents.execution.tool_router import get_chat_tools_for_model
from agents.models import ModelCapability, Run, User
from agents.models.capability import CapabilitySource

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli


class Talk:
    """One session, whose model changes from message to message."""

    def __init__(self, chat: Chat, demo: DemoServer) -> None:
        self.chat = chat
        self._demo = demo

    async def ask(
        self, text: str, model: str = "", turn: int = 1
    ) -> tuple[RecordedRequest, Run]:
        """Returns: the last call of the turn's conversation, and its run."""
        if turn > 1:
            await in_thread(
                messages.send_message,
                self.chat.session,
                author=self.chat.user,
                text=text,
                model=model,
            )
        run = await self.chat.finished(turn)
        calls = [call for call in self._demo.state.model_calls if _says(call, text)]
        return calls[-1], run


def _says(call: RecordedRequest, text: str) -> bool:
    """Whether it is the conversation's, with `text` as the last that was said."""
    body = call.body or {}
    said = [each for each in body.get("messages", []) if each["role"] == "user"]
    return bool(body.get("stream")) and text in str(said[-1:])


def tools(call: RecordedRequest) -> set[str]:
    return {str(tool["name"]) for tool in (call.body or {}).get("tools") or []}


def field(call: RecordedRequest, name: str) -> Any:
    return (call.body or {}).get(name)


async def test_each_model_is_sent_what_it_can_use(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await Chat.launch(alice, "say one", model="opus", effort="low")
    talk = Talk(chat, demo)

    call, run = await talk.ask("say one")
    assert field(call, "model") == "claude-opus-5-5"
    assert field(call, "output_config") == {"effort": "low"}
    assert field(call, "thinking")["type"] == "adaptive"
    expected = await in_thread(
        get_chat_tools_for_model, "opus", await chat.reload(), True
    )
    assert {"Read", "Write", "Bash"} <= set(expected) <= tools(call)
    assert (run.model_requested, run.model_actual) == ("claude-opus-5-5",) * 2

    # What the CLI says of its models is kept, and our short names are its own.
    listed = {row.name: row.sources async for row in ModelCapability.objects.all()}
    assert set(alias_table().values()) <= set(listed)
    assert listed["claude-opus-5-5"] == {
        "effort_levels": CapabilitySource.CLI,
        "thinking": CapabilitySource.CLI,
        "context_window": CapabilitySource.OBSERVED,
        "max_output": CapabilitySource.OBSERVED,
    }

    # For one message: a model that nobody knows.
    call, run = await talk.ask("say two", "llama-9", turn=2)
    assert field(call, "model") == "llama-9"
    assert field(call, "output_config") is None
    assert field(call, "thinking") is None
    assert "Write" in tools(call)
    assert run.model_requested == "llama-9"
    assert (await in_thread(capability_of, "llama-9")).is_unverified

    # A model that has no tools is sent none.
    await in_thread(
        record_found, "llama-9", CapabilitySource.PERSON, native_tools=False
    )
    call, run = await talk.ask("say three", "llama-9", turn=3)
    assert tools(call) == set()
    assert run.success

    # The next message is the session's own again; the CLI replaces an old model.
    await in_thread(
        sessions.update_session,
        await chat.reload(),
        alice,
        model="claude-opus-4-1",
        effort="max",
    )
    call, run = await talk.ask("say four", turn=4)
    assert (run.model_requested, run.model_actual) == (
        "claude-opus-4-1",
        "claude-opus-5-5",
    )
    notice = await chat.notice("fallback")
    assert notice.text == "claude-opus-4-1 was asked for, claude-opus-5-5 answers."
    page = await in_thread(load_page, await chat.reload(), alice)
    assert page.model_asked_for == "claude-opus-4-1"

    rows = await chat.rows()
    answers = {row.text: row.model for row in rows if row.role == "assistant"}
    assert answers["two"] == "llama-9"
    assert answers["four"] == "claude-opus-5-5"
    assert [row.model for row in rows if row.role == "user"] == [
        "",
        "llama-9",
        "llama-9",
        "",
    ]


async def test_a_model_that_was_forbidden_meanwhile_is_not_asked(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    alice.allowed_models = "claude-haiku-*"
    await alice.asave()
    chat = await Chat.launch(alice, "say forbidden")

    run = await chat.finished()

    assert run.error_class == "refused"
    assert "alice may not use “claude-sonnet-5-5”" in run.error_text
    assert not any(_says(call, "say forbidden") for call in demo.state.model_calls)
    assert await until(lambda: run.session.messages.filter(is_error=True).exists())
