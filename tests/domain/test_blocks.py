from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.extra.django import TestCase

from agents.domain import blocks
from agents.models import AgentSession, Message, Run
from agents.models.messages import MessageRole, ToolOutcome
from tests import factories
from tests.texts import HOSTILE
from tests.threads import at_once

CountQueries = Callable[[int], AbstractContextManager[Any]]


def assert_storable(value: Any) -> None:
    text = json.dumps(value, default=str, ensure_ascii=False)
    assert "\\u0000" not in text
    text.encode()


def events_of(run: Run) -> list[str]:
    return list(run.session.events.values_list("type", flat=True))


def calls(run: Run, role: str = "tool_call") -> list[Message]:
    return list(run.session.messages.filter(role=role))


# Streams


def test_a_stream_begins_grows_silently_and_ends(run: Run) -> None:
    block = blocks.start_stream(run, role=MessageRole.ASSISTANT, model="claude-x")
    begun = events_of(run)
    blocks.save_stream(block.pk, "# Half\x00")
    assert events_of(run) == begun
    assert begun[-1] == "agent:stream_start"
    block.refresh_from_db()
    assert (block.text, block.is_streaming) == ("# Half\ufffd", True)

    blocks.finish_stream(block.pk, text="# Whole", content={"a": "b\x00"}, model="y")

    block.refresh_from_db()
    assert (block.text, block.is_streaming) == ("# Whole", False)
    assert not block.is_interrupted
    assert "Whole</h" in block.rendered_html
    assert (block.content, block.model) == ({"a": "b\ufffd"}, "y")
    assert events_of(run)[-1] == "agent:stream_end"


def test_a_stream_ends_once(run: Run) -> None:
    block = blocks.start_stream(run, role=MessageRole.ASSISTANT)
    blocks.finish_stream(block.pk, text="First")
    told, count = events_of(run), AgentSession.objects.get().message_count

    blocks.finish_stream(block.pk, text="Second", is_interrupted=True)

    block.refresh_from_db()
    assert (block.text, block.is_interrupted) == ("First", False)
    assert events_of(run) == told
    assert AgentSession.objects.get().message_count == count


def test_an_end_without_text_keeps_and_renders_what_is_stored(run: Run) -> None:
    block = blocks.start_stream(run, role=MessageRole.ASSISTANT)
    blocks.save_stream(block.pk, "*kept*")

    blocks.finish_stream(block.pk, is_interrupted=True)

    block.refresh_from_db()
    assert (block.text, block.is_interrupted) == ("*kept*", True)
    assert "<em>kept</em>" in block.rendered_html


def test_only_what_the_agent_says_is_rendered(run: Run) -> None:
    assert factories.say(run, "*x*", MessageRole.THINKING).rendered_html == ""


def test_thinking_is_no_preview(run: Run) -> None:
    factories.say(run, "Hm", MessageRole.THINKING)

    session = AgentSession.objects.get()
    assert (session.last_preview, session.message_count) == ("Count to three", 2)


def test_blank_words_are_no_preview(run: Run) -> None:
    factories.say(run, " \n ")

    assert AgentSession.objects.get().last_preview == "Count to three"


def test_saving_a_stream_is_one_query(
    run: Run, django_assert_num_queries: CountQueries
) -> None:
    block = blocks.start_stream(run, role=MessageRole.ASSISTANT)

    with django_assert_num_queries(1):
        blocks.save_stream(block.pk, "Half")


# Tool calls


@pytest.mark.parametrize("order", ["hook first", "stream first", "message first"])
def test_whoever_is_first_makes_the_one_row(run: Run, order: str) -> None:
    if order == "stream first":
        begun = blocks.start_tool_call(run, tool_use_id="toolu_1", tool_name="Bash")
        blocks.save_stream(begun.pk, '{"comm')
    made = factories.call_tool(run, tool_input={"command": "ls"})
    if order == "hook first":
        found = blocks.start_tool_call(run, tool_use_id="toolu_1", tool_name="Bash")
        assert found == made
    factories.call_tool(run, tool_input={"command": "ls"}, parent_tool_use_id="toolu_0")

    (call,) = calls(run)
    assert call.content == {"input": {"command": "ls"}}
    assert (call.text, call.is_streaming) == ("", False)
    assert (call.tool_name, call.parent_tool_use_id) == ("Bash", "toolu_0")
    assert call.run == run
    assert AgentSession.objects.get().message_count == 2


def test_recording_the_same_call_again_is_silent(
    run: Run, django_assert_num_queries: CountQueries
) -> None:
    factories.call_tool(run, parent_tool_use_id="toolu_0")
    told = events_of(run)

    with django_assert_num_queries(5):  # savepoint, lock, fence, row, release
        factories.call_tool(run)

    assert events_of(run) == told
    assert calls(run)[0].parent_tool_use_id == "toolu_0"


@pytest.mark.django_db(transaction=True)
def test_hook_and_stream_at_once_make_one_row() -> None:
    run = factories.start_turn(factories.make_session(factories.make_user("alice")))

    results = at_once(
        lambda: factories.call_tool(run),
        lambda: blocks.start_tool_call(run, tool_use_id="toolu_1", tool_name="Bash"),
        lambda: factories.call_tool(run),
    )

    assert {result.pk for result in results if isinstance(result, Message)} == {
        calls(run)[0].pk
    }
    assert len(calls(run)) == 1


def test_a_result_is_filled_by_both_who_know_of_it(run: Run) -> None:
    factories.call_tool(run, parent_tool_use_id="toolu_0")
    factories.return_result(run, text="", elapsed_ms=12)

    factories.return_result(
        run, text="total\x00 0", content={"structured": {"a": "\ud800"}}
    )

    (result,) = calls(run, "tool_result")
    assert (result.text, result.elapsed_ms) == ("total\ufffd 0", 12)
    assert result.content == {"structured": {"a": "\ufffd"}}
    assert (result.tool_name, result.parent_tool_use_id) == ("Bash", "toolu_0")
    assert (result.outcome, result.is_error) == (ToolOutcome.OK, False)


def test_the_same_result_again_is_silent(run: Run) -> None:
    factories.call_tool(run)
    factories.return_result(run)
    told = events_of(run)

    factories.return_result(run)

    assert events_of(run) == told


def test_a_result_without_its_call_is_kept(run: Run) -> None:
    factories.return_result(run, "toolu_lost", text="?", parent_tool_use_id="toolu_0")

    (result,) = calls(run, "tool_result")
    assert (result.tool_name, result.parent_tool_use_id) == ("", "toolu_0")


def deny(run: Run, reason: str = "Not\x00 here") -> None:
    blocks.record_denial(
        run,
        tool_use_id="toolu_1",
        tool_name="Bash",
        tool_input={"command": "ls"},
        reason=reason,
    )


def test_a_denial_makes_call_and_result_and_is_told_once(run: Run) -> None:
    deny(run)
    deny(run, "Something else")

    assert len(calls(run)) == 1
    (result,) = calls(run, "tool_result")
    assert (result.outcome, result.text) == (ToolOutcome.DENIED, "Not\ufffd here")
    assert result.is_error
    told = run.session.events.get(type="agent:tool_denied")
    assert told.data["reason"] == "Not\ufffd here"


def test_a_denial_stays_one_when_the_cli_reports_an_error(run: Run) -> None:
    deny(run, "No")

    factories.return_result(run, text="No", outcome=ToolOutcome.ERROR)

    assert calls(run, "tool_result")[0].outcome == ToolOutcome.DENIED


def test_a_result_that_came_first_becomes_a_denial(run: Run) -> None:
    factories.call_tool(run)
    factories.return_result(run, text="", outcome=ToolOutcome.ERROR)

    deny(run, "No")

    (result,) = calls(run, "tool_result")
    assert (result.outcome, result.text) == (ToolOutcome.DENIED, "No")


def test_closing_keeps_the_calls_that_wait(run: Run) -> None:
    factories.call_tool(run, "toolu_1")
    factories.call_tool(run, "toolu_2")

    blocks.close_open_blocks(run, keep=["toolu_2"])

    assert [row.tool_use_id for row in calls(run, "tool_result")] == ["toolu_1"]


def test_other_runs_blocks_are_not_closed(run: Run) -> None:
    factories.call_tool(run)
    factories.end_turn(run)
    closed = calls(run, "tool_result")

    blocks.close_open_blocks(run)

    assert calls(run, "tool_result") == closed


class HostileTextTests(TestCase):
    """Whatever a model or a tool says can be stored in any database."""

    def setUp(self) -> None:
        session = factories.make_session(factories.make_user("alice"))
        self.run_ = factories.start_turn(session)

    @settings(max_examples=40, deadline=None)
    @given(HOSTILE, HOSTILE)
    def test_every_text_is_cleaned(self, text: str, name: str) -> None:
        run = self.run_
        tool_use_id = f"t{name}" * 40
        block = blocks.start_stream(run, role=MessageRole.ASSISTANT)
        blocks.save_stream(block.pk, text)
        blocks.finish_stream(block.pk, text=text, content={name: text}, model=name)
        factories.call_tool(run, tool_use_id, f"T{name}", {name: [text]})
        factories.return_result(run, tool_use_id, text, content={"structured": text})
        blocks.record_denial(
            run,
            tool_use_id=tool_use_id,
            tool_name=f"T{name}",
            tool_input={name: [text]},
            reason=text,
        )

        for row in run.session.messages.values():
            for value in row.values():
                assert_storable(value)
            assert len(row["tool_use_id"]) <= 200
            assert len(row["tool_name"]) <= 200
        for data in run.session.events.values_list("data", flat=True):
            assert_storable(data)
        assert run.session.messages.filter(role="tool_call").count() == len(
            set(
                run.session.messages.filter(role="tool_result").values_list(
                    "tool_use_id", flat=True
                )
            )
        )


# Edited calls


def test_an_edited_call_shows_what_runs_also_when_the_cli_brings_the_models(
    run: Run,
) -> None:
    original, edited = {"command": "echo before"}, {"command": "echo after"}
    factories.call_tool(run, tool_input=original)

    blocks.record_edit(
        run,
        tool_use_id="toolu_1",
        tool_name="Bash",
        tool_input=edited,
        original=original,
        edited_by="anna",
    )
    factories.call_tool(run, tool_input=original)

    [call] = calls(run)
    assert call.content == {
        "input": edited,
        "original_input": original,
        "edited_by": "anna",
    }
