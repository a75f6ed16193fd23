"""Waiting for a person: how the answer comes in, and what it does to the call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agents.demo.server import DemoServer
from agents.domain import approvals
from agents.domain.approvals import Decision
from agents.domain.queries.approvals import load_card
from agents.errors import AlreadyDecidedError
from agents.execution.approval import request_approval
from agents.execution.engine import Engine
from agents.execution.processes import find_marked
from agents.models import (
    AgentSession,
    AnalyticsEvent,
    ApprovalRequest,
    PermissionRule,
    Run,
    User,
)
from agents.models.approvals import ApprovalScope, ApprovalStatus
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.runs import StopReason
from agents.models.sessions import SessionStatus
from agents.models.users import OnTimeout

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli

Override = Callable[..., None]
HOUR = 3600
APPEND = 'demo: tool Bash {"command": "echo ran >> log.txt"}'
DEAF = {"default": {"BACKEND": "tests.execution.deaf_layer.DeafLayer"}}


async def said_to_model(chat: Chat, demo: DemoServer) -> str:
    """The last tool result as the model was given it."""
    last = (await chat.requests(demo))[-1]
    return json.dumps(last.messages[-1], ensure_ascii=False)


async def test_the_poll_wakes_the_agent_when_every_doorbell_is_lost(
    engine: Engine, alice: User, override_conf: Override, settings: Any
) -> None:
    settings.CHANNEL_LAYERS = DEAF
    override_conf(approval_poll_seconds=0.2)
    chat = await Chat.launch(alice, APPEND)
    await chat.decide(is_approved=True)
    run = await chat.finished()

    assert run.success
    assert chat.file("log.txt").read_text() == "ran\n"


async def test_the_doorbell_wakes_the_agent_when_nobody_polls(
    engine: Engine, alice: User, override_conf: Override
) -> None:
    override_conf(approval_poll_seconds=HOUR)
    chat = await Chat.launch(alice, APPEND)
    await chat.decide(is_approved=True)
    run = await chat.finished()

    assert run.success
    assert chat.file("log.txt").read_text() == "ran\n"


async def test_of_two_answers_at_once_one_wins_and_the_tool_runs_once(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(alice, APPEND)
    approval = await chat.pending()
    decide = sync_to_async(approvals.decide_approval, thread_sensitive=False)
    answers = await asyncio.gather(
        decide(await reread(approval), alice, Decision(is_approved=True)),
        decide(await reread(approval), alice, Decision(is_approved=True)),
        return_exceptions=True,
    )
    await chat.finished()

    losers = [a for a in answers if isinstance(a, AlreadyDecidedError)]
    assert len(losers) == 1
    assert "alice" in losers[0].user_message
    assert chat.file("log.txt").read_text() == "ran\n"


async def reread(approval: ApprovalRequest) -> ApprovalRequest:
    return await in_thread(ApprovalRequest.objects.get, pk=approval.pk)


async def test_deny_and_stop_ends_the_turn_and_its_processes(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, f"{APPEND}\ndemo: say never")
    await chat.decide(is_approved=False, message="Enough.", stops_run=True)
    run = await chat.finished()

    assert (run.stop_reason, run.error_class) == (StopReason.DENIED, "")
    assert find_marked(chat.session.pk) == []
    assert not chat.file("log.txt").exists()
    assert len(await chat.requests(demo)) == 1
    assert (await chat.reload()).status == SessionStatus.STOPPED
    results = await chat.results()
    assert [(r.outcome, r.text) for r in results] == [(ToolOutcome.DENIED, "Enough.")]


@pytest.mark.parametrize("scope", [ApprovalScope.SESSION, ApprovalScope.ALWAYS])
async def test_a_standing_rule_lets_the_same_call_through(
    engine: Engine, alice: User, scope: ApprovalScope
) -> None:
    chat = await Chat.launch(alice, f"{APPEND}\n{APPEND}")
    await chat.decide(is_approved=True, scope=scope)
    run = await chat.finished()

    assert run.success
    assert chat.file("log.txt").read_text() == "ran\nran\n"
    assert await in_thread(chat.session.approvals.count) == 1
    rule = await in_thread(PermissionRule.objects.get)
    assert rule.hits == 1


async def test_an_edit_past_the_bounds_is_refused(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, APPEND)
    approval = await chat.pending()
    edited = {**approval.tool_input, "command": "rm -rf / # tidy up"}
    await chat.decide(is_approved=True, updated_input=edited)
    await chat.finished()

    [result] = await chat.results()
    assert result.outcome == ToolOutcome.DENIED
    assert result.text.startswith("The user approved this call with an edited input")
    assert not chat.file("log.txt").exists()
    card = await in_thread(load_card, approval.pk, alice)
    assert card is not None
    assert card.outcome.endswith("approved by alice, but refused")
    assert card.refusal == result.text


async def test_an_edited_call_is_kept_as_it_ran(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(alice, APPEND)
    approval = await chat.pending()
    edited = {**approval.tool_input, "command": "echo edited >> log.txt"}
    await chat.decide(is_approved=True, updated_input=edited)
    await chat.finished()

    assert chat.file("log.txt").read_text() == "edited\n"
    [call] = [row for row in await chat.rows() if row.role == MessageRole.TOOL_CALL]
    assert call.content == {
        "input": edited,
        "original_input": approval.tool_input,
        "edited_by": "alice",
    }


QUESTIONS = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "multiSelect": False,
            "options": [
                {"label": "Green", "description": "Calm"},
                {"label": "Blue", "description": "Cool"},
            ],
        },
        {
            "question": "Which fruits?",
            "header": "Fruits",
            "multiSelect": True,
            "options": [
                {"label": "Apple", "description": "Round"},
                {"label": "Pear", "description": "Long"},
            ],
        },
        {
            "question": "Which size?",
            "header": "Size",
            "multiSelect": False,
            "options": [
                {"label": "Small", "description": "S"},
                {"label": "Large", "description": "L"},
            ],
        },
    ]
}


async def test_a_question_is_answered_through_its_input(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice, f"demo: ask {json.dumps(QUESTIONS)}", security_mode="full"
    )
    approval = await chat.pending()
    answers = {
        "Which colour?": "Blue",
        "Which fruits?": "Apple, Pear",
        "Which size?": "as big as a house",
    }
    assert approval.kind == "question"
    await chat.decide(
        is_approved=True, updated_input={**approval.tool_input, "answers": answers}
    )
    run = await chat.finished()
    said = await said_to_model(chat, demo)

    assert run.success
    for question, answer in answers.items():
        assert question in said
        assert answer in said


async def test_an_approved_plan_is_carried_out(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice, 'demo: plan Append a line.\ndemo: tool Write {"file_path":'
        ' "$CWD/made.txt", "content": "made"}',
        security_mode="full",
    )  # fmt: skip
    approval = await chat.pending()
    assert (approval.kind, approval.tool_name) == ("plan", "ExitPlanMode")
    await chat.decide(is_approved=True)
    run = await chat.finished()

    assert run.success
    assert chat.file("made.txt").read_text() == "made"


async def test_a_rejected_plan_changes_nothing(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice, 'demo: plan Append a line.\ndemo: tool Write {"file_path":'
        ' "$CWD/made.txt", "content": "made"}',
        security_mode="full",
    )  # fmt: skip
    await chat.decide(is_approved=False, message="Not like this.")
    await chat.finished()

    assert "Not like this." in str((await chat.requests(demo))[-1].messages)
    assert not chat.file("made.txt").exists()


async def test_nobody_answering_means_no_where_the_session_says_so(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(approval_hot_seconds=0.3, approval_poll_seconds=HOUR)
    await in_thread(prefer_denial, alice)
    chat = await Chat.launch(alice, APPEND)
    await chat.finished()

    assert "Approval timed out" in str((await chat.requests(demo))[-1].messages)
    assert not chat.file("log.txt").exists()


def prefer_denial(user: User) -> None:
    from agents.domain.accounts import preferences_of

    preferences = preferences_of(user)
    preferences.on_timeout = OnTimeout.DENY
    preferences.save()


async def test_what_waits_for_the_same_is_let_through_by_its_new_rule(
    engine: Engine, alice: User
) -> None:
    calls = [f'demo: tool Bash {{"command": "ls -{flag}"}}' for flag in "alR"]
    chats = [
        await Chat.launch(
            alice, "\n".join(["demo: parallel", *calls[:2], "demo: end"])
        ),
        await Chat.launch(alice, calls[2]),
    ]
    await until(lambda: ApprovalRequest.objects.pending().count() == len(calls))

    await chats[0].decide(is_approved=True, scope=ApprovalScope.ALWAYS)
    ended = [await chat.finished() for chat in chats]

    assert [run.success for run in ended] == [True, True]
    by_rule = await in_thread(ApprovalRequest.objects.filter(channel="rule").count)
    assert by_rule == 2
    rule = await in_thread(PermissionRule.objects.get)
    assert (rule.matcher, rule.hits) == ("ls:*", 2)


async def test_a_tool_of_ours_can_ask_and_waits(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(alice, "demo: hold own-tool after 2 words")
    await chat.writing()
    asked = [
        asyncio.ensure_future(
            request_approval(chat.session, "mcp__own__send", {"to": "bob"})
        )
        for _ in range(2)
    ]
    await until(lambda: chat.session.approvals.pending().count() == 2)
    await chat.decide(is_approved=True)
    await chat.decide(is_approved=False, message="Not to bob.")
    answers = await asyncio.gather(*asked)

    assert sorted(answer["behavior"] for answer in answers) == ["allow", "deny"]
    assert "Not to bob." in [answer["message"] for answer in answers]
    await chat.stop()
    await chat.finished()


@pytest.mark.parametrize("tracked", [True, False])
async def test_what_a_tool_of_ours_asks_is_kept_as_analytics_if_wanted(
    run: Run, alice: User, tracked: bool
) -> None:
    asked = asyncio.ensure_future(
        request_approval(run.session, "mcp__own__send", {}, 60, tracked)
    )
    approval = await until(lambda: run.session.approvals.pending().first())
    await in_thread(
        approvals.decide_approval, approval, alice, Decision(is_approved=True)
    )
    assert (await asked)["behavior"] == "allow"

    kept = AnalyticsEvent.objects.filter(type__startswith="approval.")
    names: list[str] = await in_thread(list, kept.values_list("type", flat=True))
    assert names == (["approval.requested", "approval.resolved"] if tracked else [])


async def test_a_stop_withdraws_what_was_asked(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(alice, APPEND)
    approval = await chat.pending()
    await chat.stop()
    run = await chat.finished()

    assert run.stop_reason == StopReason.CANCELLED
    assert (await reread(approval)).status == ApprovalStatus.CANCELLED
    assert [row.outcome for row in await chat.results()] == [ToolOutcome.CANCELLED]
    assert not chat.file("log.txt").exists()
    with pytest.raises(AlreadyDecidedError):
        await in_thread(
            approvals.decide_approval,
            await reread(approval),
            alice,
            Decision(is_approved=True),
        )


async def test_a_gate_that_fails_refuses(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice, f"demo: hold broken-mode after 2 words\n{APPEND}", security_mode="full"
    )
    await chat.writing()
    await in_thread(break_security_mode, chat.session)
    demo.state.release("broken-mode")
    run = await chat.finished()

    assert run.success
    assert [row.is_error for row in await chat.results()] == [True]
    assert not chat.file("log.txt").exists()
    assert "could not decide" in str((await chat.requests(demo))[-1].messages)


def break_security_mode(session: AgentSession) -> None:
    """A row that policy can't read, as after a bad migration."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        AgentSession.objects.filter(pk=session.pk).update(security_mode="bogus")
        cursor.execute("PRAGMA ignore_check_constraints = OFF")
