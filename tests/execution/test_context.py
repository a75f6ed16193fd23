"""Long conversations on the real engine: how full, summarised, forgotten."""

from __future__ import annotations

import json

import pytest

from agents.demo.script import Refusal
from agents.demo.server import DemoServer
from agents.demo.state import RecordedRequest
from agents.domain import branches, context, notices
from agents.domain.duplicates import duplicate_session
from agents.execution.engine import Engine
from agents.models import Message, SessionEvent, User
from agents.models.messages import MessageRole
from agents.models.runs import RunKind, StopReason

from .conftest import Chat, in_thread

pytestmark = pytest.mark.cli

TOO_LONG = "prompt is too long: 210000 tokens > 200000 maximum"
SUMMARY = "This session is being continued from a previous conversation"


def asked(demo: DemoServer, since: int = 0) -> list[RecordedRequest]:
    """The calls of conversations; not those that ask for a summary."""
    return [
        call
        for call in demo.state.model_calls[since:]
        if call.tools
        and "create a detailed summary of" not in json.dumps(call.messages)
    ]


def remembers(
    demo: DemoServer, *words: str, call: RecordedRequest | None = None
) -> list[bool]:
    """Whether the model was sent each of these as a message, not as a summary."""
    said = [
        str(part.get("text", ""))
        for message in (call or asked(demo)[-1]).messages
        for part in _parts(message["content"])
    ]
    lines = [line for text in said if SUMMARY not in text for line in text.split("\n")]
    return [any(line.strip() == word for line in lines) for word in words]


def _parts(content: object) -> list[dict[str, object]]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}]


def has_summary(demo: DemoServer, call: RecordedRequest | None = None) -> bool:
    return SUMMARY in json.dumps((call or asked(demo)[-1]).messages)


async def chat_of_two(alice: User) -> Chat:
    chat = await Chat.launch(alice, "say one")
    await chat.finished()
    await chat.send("say two")
    await chat.finished(2)
    return chat


async def compact(chat: Chat) -> Message:
    return await in_thread(context.compact, chat.session)


async def clear(chat: Chat) -> Message:
    return await in_thread(context.clear, chat.session, chat.user)


async def edit(chat: Chat, old: str, new: str) -> None:
    message = await in_thread(
        lambda: chat.session.messages.get(role=MessageRole.USER, text=old)
    )
    await in_thread(branches.edit_message, message, author=chat.user, text=new)


async def context_tokens(chat: Chat) -> int | None:
    return await in_thread(
        lambda: (
            type(chat.session)
            .objects.values_list("active_branch__context_tokens", flat=True)
            .get(pk=chat.session.pk)
        )
    )


async def events(chat: Chat, wire: str) -> list[dict[str, object]]:
    rows = SessionEvent.objects.filter(session=chat.session, type=wire)
    return await in_thread(lambda: list(rows.values_list("data", flat=True)))


async def test_the_size_of_the_context_is_that_of_the_last_call(
    engine: Engine, alice: User
) -> None:
    numbers = "usage input 10 output 7 cache_read 40000 cache_write 6000"
    chat = await Chat.launch(alice, f"demo: say big\ndemo: {numbers}")
    await chat.finished()

    assert await context_tokens(chat) == 46_017
    assert (await events(chat, "agent:context_update"))[-1] == {
        "branch_id": str((await chat.reload()).active_branch_id),
        "tokens": 46_017,
        "window_tokens": 1_000_000,
    }


async def test_compact_goes_on_from_a_summary(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)

    row = await compact(chat)
    run = await chat.finished(3)
    await chat.send("say three")
    await chat.finished(4)

    assert (run.kind, run.stop_reason) == (RunKind.COMPACT, StopReason.NO_TOOL_CALLS)
    assert has_summary(demo)
    assert remembers(demo, "say one", "say three") == [False, True]
    await in_thread(row.refresh_from_db)
    assert row.content["kind"] == "compacted"
    assert row.text.startswith("The conversation was summarised: ")
    (told,) = await events(chat, "agent:compacted")
    assert told["trigger"] == "manual"
    assert told["message_id"] == str(row.pk)
    said = [r.text for r in await chat.rows() if r.role == MessageRole.ASSISTANT]
    assert said == ["one", "two", "three"]


async def test_an_edit_before_a_summary_has_the_words_and_not_the_summary(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)
    await compact(chat)
    await chat.finished(3)
    await chat.send("say three")
    await chat.finished(4)

    await edit(chat, "say two", "say zwei")
    await chat.finished(5)

    assert not has_summary(demo)
    assert remembers(demo, "say one", "say two", "say zwei", "say three") == [
        *(True, False, True, False)
    ]


async def test_an_edit_after_a_summary_has_the_summary(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)
    await compact(chat)
    await chat.finished(3)
    await chat.send("say three")
    await chat.finished(4)

    await edit(chat, "say three", "say drei")
    await chat.finished(5)

    assert has_summary(demo)
    assert remembers(demo, "say one", "say three", "say drei") == [False, False, True]


async def test_compact_waits_for_the_turn_that_is_on(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await Chat.launch(alice, "demo: say a\ndemo: hold compact\ndemo: say b")
    await chat.writing("a")

    row = await compact(chat)
    again = await compact(chat)
    demo.state.release("compact")
    run = await chat.finished(2)

    assert again == row
    assert (run.kind, run.trigger_message_id) == (RunKind.COMPACT, row.pk)
    assert run.success


async def test_a_summary_that_fails_says_so_and_can_be_tried_again(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)
    demo.state.refuse_next(Refusal(403, times=1))

    row = await compact(chat)
    run = await chat.finished(3)

    assert (run.stop_reason, run.error_class) == (StopReason.ERROR, "auth")
    await in_thread(row.refresh_from_db)
    assert row.text == notices.NOT_COMPACTED
    await chat.retry()
    run = await chat.finished(4)
    await in_thread(row.refresh_from_db)
    assert (run.kind, run.success) == (RunKind.COMPACT, True)
    assert row.content["kind"] == "compacted"


async def test_a_conversation_that_is_too_long_is_summarised_by_itself(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)

    await chat.send(f"demo: error 400 times 1 message {TOO_LONG}\ndemo: say done")
    run = await chat.finished(3)

    assert run.success
    assert has_summary(demo)
    (told,) = await events(chat, "agent:compacted")
    assert told["trigger"] == "auto"
    kinds = [kind for kind, _ in await chat.notices()]
    assert kinds == ["compacted"]


async def test_one_that_stays_too_long_says_so_and_its_prompt_can_be_tried_again(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)
    script = f"demo: error 400 message {TOO_LONG}"

    await chat.send(script)
    run = await chat.finished(3)
    assert run.stop_reason == StopReason.CONTEXT_LIMIT
    assert run.error_class == "context_limit"
    calls = len(demo.state.model_calls)
    await chat.retry()
    await chat.finished(4)

    again = asked(demo, since=calls)[0]
    assert not has_summary(demo, again)
    assert remembers(demo, "say one", "say two", script, call=again) == [True] * 3
    assert json.dumps(again.messages).count(TOO_LONG) == 1


async def test_after_clear_the_model_knows_nothing_of_before(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)

    await clear(chat)
    assert await context_tokens(chat) == 0
    await chat.send("say three")
    await chat.finished(3)
    assert remembers(demo, "say one", "say two", "say three") == [False, False, True]
    await chat.send("say four")
    await chat.finished(4)

    assert remembers(demo, "say one", "say three", "say four") == [False, True, True]


async def test_edits_on_both_sides_of_a_clear_have_their_own_memory(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)
    await clear(chat)
    await chat.send("say three")
    await chat.finished(3)
    await chat.send("say four")
    await chat.finished(4)

    await edit(chat, "say four", "say vier")
    await chat.finished(5)
    assert remembers(demo, "say two", "say three", "say four", "say vier") == [
        *(False, True, False, True)
    ]

    await edit(chat, "say three", "say drei")
    await chat.finished(6)
    assert remembers(demo, "say two", "say three", "say drei") == [False, False, True]

    await edit(chat, "say two", "say zwei")
    await chat.finished(7)
    assert remembers(demo, "say one", "say two", "say zwei", "say three") == [
        *(True, False, True, False)
    ]


async def test_a_copy_up_to_before_a_clear_remembers_what_it_shows(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)
    await clear(chat)
    await chat.send("say three")
    await chat.finished(3)
    session = await chat.reload()
    answer = await in_thread(
        lambda: chat.session.messages.get(role=MessageRole.ASSISTANT, text="two")
    )

    copy = await in_thread(lambda: duplicate_session(session, alice, up_to=answer))
    copied = Chat(copy, alice)
    await copied.send("say four")
    await copied.finished()

    assert remembers(demo, "say one", "say two", "say three", "say four") == [
        *(True, True, False, True)
    ]


async def test_a_copy_of_a_cleared_session_has_forgotten_too(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)
    await clear(chat)
    session = await chat.reload()

    copy = await in_thread(lambda: duplicate_session(session, alice))
    copied = Chat(copy, alice)
    await copied.send("say four")
    await copied.finished()

    assert remembers(demo, "say one", "say two", "say four") == [False, False, True]


async def test_a_clear_after_a_summary_forgets_the_summary(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)
    await compact(chat)
    await chat.finished(3)

    await clear(chat)
    await chat.send("say three")
    await chat.finished(4)

    assert not has_summary(demo)
    assert remembers(demo, "say one", "say three") == [False, True]


async def test_stop_ends_a_summary_that_is_being_made(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await Chat.launch(
        alice, "demo: say one\ndemo: summary hold summing\ndemo: summary say Never."
    )
    await chat.finished()

    row = await compact(chat)
    await in_thread(demo.state.wait_until_held, "summing")
    await chat.stop()
    run = await chat.finished(2)

    assert run.stop_reason == StopReason.CANCELLED
    await in_thread(row.refresh_from_db)
    assert row.text == notices.NOT_COMPACTED
    demo.state.release("summing")
    await chat.send("say two")
    await chat.finished(3)
    assert not has_summary(demo)
    assert remembers(demo, "say two") == [True]


async def test_a_person_who_types_the_command_is_taken_at_their_word(
    engine: Engine, demo: DemoServer, alice: User
) -> None:
    chat = await chat_of_two(alice)
    calls = len(demo.state.model_calls)

    await chat.send("/compact")
    run = await chat.finished(3)

    assert run.kind == RunKind.PROMPT
    assert len(demo.state.model_calls) == calls + 1
    assert remembers(demo, "say one", "/compact") == [True, True]
