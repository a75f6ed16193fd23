"""The transcript: what belongs together, what a branch shows, how much is read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.domain import blocks
from agents.domain.approvals import Decision, decide_approval
from agents.domain.queries.approvals import load_card
from agents.domain.queries.branches import lineage
from agents.domain.queries.items import Item
from agents.domain.queries.transcript import (
    MAX_CONTENT_CHARACTERS,
    load_item,
    load_transcript,
    stored_text,
)
from agents.models import AgentSession, Message, MessageBranch, Run, User
from agents.models.messages import MessageRole, ToolOutcome
from tests import factories

pytestmark = pytest.mark.django_db


def texts(items: tuple[Item, ...]) -> list[str]:
    return [item.message.text for item in items]


def test_a_result_stands_in_its_calls_item(run: Run, alice: User) -> None:
    factories.call_tool(run)
    factories.return_result(run, text="total 0")

    items = load_transcript(run.session, alice).items

    assert [item.message.role for item in items] == ["user", "tool_call"]
    assert items[1].result is not None
    assert items[1].result.text == "total 0"
    assert items[1].state == "done"


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (ToolOutcome.OK, "done"),
        (ToolOutcome.ERROR, "error"),
        (ToolOutcome.DENIED, "denied"),
        (ToolOutcome.CANCELLED, "stopped"),
    ],
)
def test_a_call_shows_how_it_ended(
    run: Run, alice: User, outcome: ToolOutcome, state: str
) -> None:
    factories.call_tool(run)
    assert load_transcript(run.session, alice).items[-1].state == "running"

    factories.return_result(run, outcome=outcome)

    assert load_transcript(run.session, alice).items[-1].state == state


def test_a_call_that_asks_is_waiting(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run)

    item = load_transcript(run.session, alice).items[-1]

    assert item.state == "waiting"
    assert item.approval is not None
    assert item.approval.approval == approval
    assert item.approval.can_answer


def test_an_approved_call_whose_edit_was_refused_says_so(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run)
    edited = {"file_path": "/etc/passwd", "content": ""}
    decide_approval(approval, alice, Decision(is_approved=True, updated_input=edited))
    factories.return_result(run, text="Outside.", outcome=ToolOutcome.DENIED)

    card = load_transcript(run.session, alice).items[-1].approval

    assert card is not None
    assert card.refusal == "Outside."
    assert load_card(approval.pk, alice) == card
    assert card.outcome.endswith("approved by alice, but refused")


def test_what_a_sub_agent_did_stands_in_its_call_at_any_depth(
    run: Run, alice: User
) -> None:
    agent = factories.call_tool(run, "toolu_a", "Agent", {"prompt": "look"})
    factories.call_tool(run, "toolu_b", "Agent", {}, parent_tool_use_id="toolu_a")
    deep = factories.call_tool(run, "toolu_c", parent_tool_use_id="toolu_b")
    result = factories.return_result(run, "toolu_c", "deep down")

    items = load_transcript(run.session, alice).items

    assert items[-1].message == agent
    [inner] = items[-1].children
    [innermost] = inner.children
    assert innermost.message == deep
    assert innermost.result == result
    for message in (deep, result):
        found = load_item(run.session, alice, message.pk)
        assert found is not None
        assert found.message == agent


def test_hidden_and_queued_messages_are_left_out(run: Run, alice: User) -> None:
    branch_id = run.branch_id
    for fields in ({"hidden": True}, {"queued_at": run.created_at}):
        message = blocks.add_message(
            run.session_id,
            branch_id=branch_id,
            role=MessageRole.USER,
            text="Not yet",
            **fields,
        )
        assert load_item(run.session, alice, message.pk) is None

    assert texts(load_transcript(run.session, alice).items) == ["Count to three"]


def test_it_begins_with_the_newest_page(run: Run, alice: User) -> None:
    for number in range(5):
        factories.say(run, f"Line {number}")

    newest = load_transcript(run.session, alice, limit=2)
    older = load_transcript(run.session, alice, limit=4, before_seq=newest.oldest_seq)

    assert texts(newest.items) == ["Line 3", "Line 4"]
    assert newest.has_older
    assert texts(older.items) == ["Count to three", "Line 0", "Line 1", "Line 2"]
    assert not older.has_older
    assert older.oldest_seq == 0


@pytest.mark.parametrize("count", [1, 3, 2000])
def test_it_takes_the_same_queries_however_long_the_session_is(
    run: Run, alice: User, count: int
) -> None:
    Message.objects.bulk_create(
        Message(
            session=run.session,
            branch_id=run.branch_id,
            run=run,
            seq=100 + count - number,
            role=MessageRole.ASSISTANT if number else MessageRole.USER,
            text=f"Line {number}",
        )
        for number in reversed(range(count))  # a person's message on the page shown
    )
    AgentSession.objects.filter(pk=run.session_id).update(last_message_seq=9000)
    factories.ask_approval(run)

    with CaptureQueriesContext(connection) as captured:
        transcript = load_transcript(run.session, alice)
        for item in transcript.items:
            assert item.speaker
            assert item.message.text or (item.approval and item.approval.rule)

    assert len(captured) == 8


def test_big_texts_are_cut_by_the_database(
    run: Run, alice: User, override_conf: Callable[..., None]
) -> None:
    override_conf(message_preview_bytes=100)
    factories.say(run, "é" * 101)
    factories.say(run, "é" * 100)
    factories.call_tool(run)
    factories.return_result(run, text="x" * 5_000_000)

    first, second, call = load_transcript(run.session, alice).items[1:]

    assert (len(first.message.text), first.is_cut, first.is_html) == (100, True, False)
    assert (len(second.message.text), second.is_cut) == (100, False)
    assert second.is_html
    assert call.result is not None
    assert len(call.result.text) == 101
    assert call.is_shortened


def test_huge_content_is_not_read(run: Run, alice: User) -> None:
    factories.call_tool(run, tool_input={"command": "x" * MAX_CONTENT_CHARACTERS})

    item = load_transcript(run.session, alice).items[-1]

    assert item.message.content == {}
    assert item.is_shortened


def test_a_streamed_text_is_never_cut(
    run: Run, alice: User, override_conf: Callable[..., None]
) -> None:
    override_conf(message_preview_bytes=10)
    message = blocks.start_stream(run, role=MessageRole.ASSISTANT)
    blocks.save_stream(message.pk, "0123456789abcdef")

    item = load_transcript(run.session, alice).items[-1]

    assert (item.message.text, item.is_cut) == ("0123456789abcdef", False)
    assert stored_text(message.pk, 10) == "abcdef"
    blocks.finish_stream(message.pk)
    assert stored_text(message.pk, 10) is None


def fork(session: AgentSession, parent: MessageBranch, seq: int) -> MessageBranch:
    point = session.messages.get(seq=seq)
    return MessageBranch.objects.create(
        session=session, parent_branch=parent, fork_point_message=point
    )


def add(branch: MessageBranch, text: str) -> int:
    message = blocks.add_message(
        branch.session_id, branch_id=branch.pk, role=MessageRole.USER, text=text
    )
    return message.seq


def test_three_nested_branches_linearise(alice: User) -> None:
    session = factories.make_session(alice, "one")
    main = session.active_branch
    assert main is not None
    add(main, "two")
    second = fork(session, main, add(main, "replaced in second"))
    add(main, "main goes on")
    add(second, "three")
    third = fork(session, second, add(second, "replaced in third"))
    add(second, "second goes on")
    add(third, "four")
    early = fork(session, third, session.messages.get(text="two").seq)
    add(early, "instead of two")

    shown = {}
    for name, branch in {"main": main, "third": third, "early": early}.items():
        session.active_branch = branch
        shown[name] = texts(load_transcript(session, alice).items)

    assert shown == {
        "main": ["one", "two", "replaced in second", "main goes on"],
        "third": ["one", "two", "three", "four"],
        "early": ["one", "instead of two"],
    }
    assert lineage(session.pk, None) == []
