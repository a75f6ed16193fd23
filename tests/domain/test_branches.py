"""Branches beside a queue, and in copies: what random histories found, one by one."""

from __future__ import annotations

from agents.domain import branches
from agents.domain.duplicates import duplicate_session
from agents.domain.messages import send_message
from agents.domain.queries.branches import load_navigators
from agents.domain.runs import stop_agent
from agents.models import AgentSession, Message, User
from agents.models.messages import MessageRole
from agents.models.runs import StopReason

from .scripted_engine import ScriptedTurn


def answered(session: AgentSession, text: str, author: User) -> Message:
    """Send a message and answer it."""
    sent = send_message(session, author=author, text=text)
    end(session, f"about {text}")
    return sent


def end(session: AgentSession, answer: str) -> ScriptedTurn:
    turn = ScriptedTurn.claim(session)
    turn.say(answer)
    turn.end(StopReason.NO_TOOL_CALLS)
    return turn


def test_what_waits_is_not_the_prompt_of_an_answer(
    session: AgentSession, alice: User
) -> None:
    turn = ScriptedTurn.claim(session)
    first = session.messages.get()
    send_message(session, author=alice, text="Later")
    answer = Message.objects.get(pk=turn.say("One"))

    assert branches.prompt_of(answer) == first


def test_what_waits_on_a_new_branch_is_not_what_it_begins_with(
    session: AgentSession, alice: User
) -> None:
    end(session, "One")
    second = answered(session, "Second", alice)
    send_message(session, author=alice, text="Third")
    turn = ScriptedTurn.claim(session)
    edited = branches.edit_message(second, author=alice, text="Second, edited")
    send_message(session, author=alice, text="Then")
    turn.end(StopReason.CANCELLED)
    edited.refresh_from_db()
    assert edited.delivered_at is not None

    navigator = load_navigators(session.pk)[second.pk]
    assert navigator.branch_ids == (second.branch_id, edited.branch_id)
    assert load_navigators(session.pk)[edited.pk].position == 2

    again = branches.edit_message(edited, author=alice, text="Second, once more")
    assert again.branch.fork_point_message == second
    assert again.branch.parent_branch_id == second.branch_id


def test_a_fork_whose_message_was_taken_back_has_no_navigator(
    session: AgentSession, alice: User
) -> None:
    first = session.messages.get()
    ScriptedTurn.claim(session)
    branches.edit_message(first, author=alice, text="Other").delete()

    assert load_navigators(session.pk) == {}


def test_an_edit_in_a_copy_that_did_not_begin_keeps_only_what_came_before(
    session: AgentSession, alice: User
) -> None:
    end(session, "One")
    answered(session, "Second", alice)
    copy = duplicate_session(session, alice)
    first, second = copy.messages.filter(role=MessageRole.USER)

    branches.edit_message(second, author=alice, text="Second, edited")

    assert end(copy, "Two").sent == [first.text, "One", "Second, edited"]


def test_what_was_stopped_before_it_began_is_heard_with_the_next_message(
    session: AgentSession, alice: User
) -> None:
    end(session, "One")
    for text in ("Second", "Third"):
        send_message(session, author=alice, text=text)
        stop_agent(session)
    send_message(session, author=alice, text="Fourth")
    turn = end(session, "Four")
    first = session.messages.order_by("seq")[0]

    assert turn.prepared.content == "Second\n\nThird\n\nFourth"
    assert turn.sent == [first.text, "One", "Second", "Third", "Fourth"]
    send_message(session, author=alice, text="Fifth")
    assert ScriptedTurn.claim(session).prepared.content == "Fifth"
