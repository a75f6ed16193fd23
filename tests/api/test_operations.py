"""What programs can do goes through the same domain as the pages."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from agents.domain.sessions import close_session
from agents.domain.subagents import start_sub_agent
from agents.models import (
    AgentSession,
    Message,
    Provider,
    Run,
    Share,
    User,
)
from agents.models.approvals import ApprovalScope, ApprovalStatus
from agents.models.messages import MessageRole
from agents.models.sessions import ShareRight
from agents.models.users import Role
from tests import factories

from .conftest import MakeProgram, Program

pytestmark = pytest.mark.django_db


@pytest.fixture
def mine(program: MakeProgram, alice: User) -> Program:
    return program(alice)


def error_of(answer: Any) -> tuple[int, str, list[str]]:
    error = answer.json()["error"]
    fields = [each["field"] for each in error["fields"]]
    return answer.status_code, error["code"], fields


def test_an_agent_is_started_with_all_that_was_asked(
    mine: Program, alice: User
) -> None:
    provider = Provider.objects.create(owner=alice, name="Mine", kind="gateway")
    body = {
        "task": "Count",
        "name": "Counter",
        "mode": "ask",
        "model": "claude-x",
        "provider": "Mine",
        "effort": "high",
        "security_mode": "sandbox",
        "system_prompt": "Be brief.",
        "max_steps": 7,
        "max_budget_usd": 0.29,
        "temperature": 0.5,
    }

    answer = mine.post("/sessions/", body)

    assert answer.status_code == 201
    said = answer.json()
    answered = body.keys() - {"task", "provider"}
    assert {name: said[name] for name in answered} == {
        name: body[name] for name in answered
    }
    session = AgentSession.objects.get(pk=said["id"])
    assert (session.owner, session.provider) == (alice, provider)
    assert session.max_budget_usd_micros == 290_000
    assert session.messages.get().text == "Count"


def test_a_start_that_is_sent_again_starts_nothing_new(mine: Program) -> None:
    body = {"task": "Once", "client_message_id": str(uuid4())}

    first, second = mine.post("/sessions/", body), mine.post("/sessions/", body)

    assert first.json()["id"] == second.json()["id"]
    assert AgentSession.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "task"),
        ({"task": " "}, "task"),
        ({"task": "x", "mode": "nope"}, "mode"),
        ({"task": "x", "provider": "nope"}, "provider"),
        ({"task": "x", "folder_id": str(uuid4())}, "folder_id"),
        ({"task": "x", "max_steps": 0}, "max_steps"),
        ({"task": "x", "max_steps": "3"}, "max_steps"),
        ({"task": "x", "temperature": 2}, "temperature"),
        ({"task": "x", "effort": "huge"}, "effort"),
        ({"task": "x", "unknown": 1}, "unknown"),
    ],
)
def test_what_starts_nothing_is_refused_with_the_field(
    mine: Program, body: dict[str, Any], field: str
) -> None:
    assert error_of(mine.post("/sessions/", body)) == (422, "invalid_input", [field])
    assert not AgentSession.objects.exists()


def test_broken_json_is_said_to_be(mine: Program) -> None:
    answer = mine.post("/sessions/", "{")

    assert error_of(answer)[:2] == (400, "bad_request")


def test_a_ceiling_binds_programs_too(program: MakeProgram, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(security_ceiling="sandbox")
    alice.refresh_from_db()

    answer = program(alice).post("/sessions/", {"task": "x", "security_mode": "full"})

    assert error_of(answer) == (422, "invalid_input", ["security_mode"])


def test_viewers_start_nothing(program: MakeProgram) -> None:
    viewer = factories.make_user("vera", role=Role.VIEWER)

    answer = program(viewer).post("/sessions/", {"task": "x"})

    assert error_of(answer)[:2] == (403, "not_allowed")


def test_the_list_holds_what_the_person_may_see_in_pages(
    mine: Program, alice: User, bob: User
) -> None:
    own = [factories.make_session(alice, f"Task {n}") for n in range(3)]
    shared = factories.make_session(bob, "Shared")
    factories.make_session(bob, "Bob’s own")
    Share.objects.create(session=shared, user=alice, right=ShareRight.VIEW)

    first = mine.get("/sessions/", page_size=3).json()
    second = mine.get("/sessions/", page_size=3, page=2).json()
    queued = mine.get("/sessions/", status="completed").json()

    found = [each["id"] for each in (*first["items"], *second["items"])]
    assert sorted(found) == sorted(str(each.pk) for each in (*own, shared))
    assert (first["total"], first["pages"], second["page"]) == (4, 2, 2)
    assert queued["items"] == []


def test_the_list_costs_the_same_however_long_it_is(
    mine: Program, alice: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        factories.make_session(alice, f"Task {number}")

    with django_assert_max_num_queries(4):  # token, its use, count, rows
        assert len(mine.get("/sessions/").json()["items"]) == 12


def test_a_message_is_said_once(mine: Program, session: AgentSession) -> None:
    path = f"/sessions/{session.pk}/messages/"
    body = {"text": "And then?", "client_message_id": str(uuid4())}

    first, second = mine.post(path, body), mine.post(path, body)
    other = mine.post(path, {**body, "text": "Other words"})

    assert first.json()["id"] == second.json()["id"]
    assert first.json()["is_queued"], "a turn is on"
    assert error_of(other)[:2] == (409, "reused_id")
    assert Message.objects.filter(role=MessageRole.USER).count() == 2


def test_messages_come_in_pages_and_long_results_by_themselves(
    mine: Program, session: AgentSession, run: Run, override_conf: Any
) -> None:
    override_conf(message_preview_bytes=10)
    factories.call_tool(run)
    said = factories.say(run, "An answer that is longer than ten")
    path = f"/sessions/{session.pk}/messages/"

    page = mine.get(path, limit=2).json()
    older = mine.get(path, before_seq=page["items"][0]["seq"]).json()
    call = page["items"][0]
    whole = mine.get(f"/messages/{call['id']}/").json()

    assert [each["role"] for each in page["items"]] == ["tool_call", "assistant"]
    assert (page["has_older"], older["has_older"]) == (True, False)
    assert [each["role"] for each in older["items"]] == ["user"]
    assert page["items"][1]["text"] == said.text
    assert (call["content"], call["is_truncated"]) == ({}, True)
    assert (whole["content"], whole["is_truncated"]) == (
        Message.objects.get(pk=call["id"]).content,
        False,
    )


def test_who_may_only_look_can_read_and_nothing_else(
    program: MakeProgram, bob: User, session: AgentSession, run: Run
) -> None:
    approval = factories.ask_approval(run)
    Share.objects.create(session=session, user=bob, right=ShareRight.VIEW)
    theirs = program(bob)

    sent = theirs.post(f"/sessions/{session.pk}/messages/", {"text": "x"})
    decided = theirs.post(f"/approvals/{approval.pk}/decide/", {"decision": "approve"})

    assert theirs.get(f"/sessions/{session.pk}/").status_code == 200
    assert theirs.get(f"/approvals/{approval.pk}/").status_code == 200
    assert error_of(sent)[:2] == error_of(decided)[:2] == (403, "not_allowed")


def test_nothing_is_done_to_a_sub_agent_itself(
    mine: Program, session: AgentSession, run: Run
) -> None:
    factories.call_tool(run, "toolu_agent", "Agent", {"prompt": "Look"})
    agent = start_sub_agent(run, tool_use_id="toolu_agent", agent_id="agent-1")

    assert mine.get(f"/sessions/{agent.pk}/messages/").status_code == 200
    stopped = mine.post(f"/sessions/{agent.pk}/stop/")
    assert error_of(stopped)[:2] == (409, "sub_agent")


def test_stopping_says_whether_something_was_at_work(
    mine: Program, session: AgentSession
) -> None:
    path = f"/sessions/{session.pk}/stop/"

    first, second = mine.post(path).json(), mine.post(path).json()

    assert (first["stopped"], second["stopped"]) == (True, False)
    assert second["session"]["status"] == "stopped"


def test_what_waits_is_listed_and_decided_once(mine: Program, run: Run) -> None:
    approval = factories.ask_approval(run)
    path = f"/approvals/{approval.pk}/decide/"

    [listed] = mine.get("/approvals/").json()["items"]
    decided = mine.post(path, {"decision": "approve"})
    again = mine.post(path, {"decision": "deny"})

    assert listed["id"] == str(approval.pk)
    assert decided.json()["status"] == "approved"
    assert decided.json()["decided_by"] == "alice"
    assert error_of(again)[:2] == (409, "already_decided")
    assert mine.get("/approvals/").json()["items"] == []
    [over] = mine.get("/approvals/", status="approved").json()["items"]
    assert over["id"] == str(approval.pk)
    approval.refresh_from_db()
    assert approval.channel == "api"


def test_other_input_runs_in_place_of_the_models(mine: Program, run: Run) -> None:
    approval = factories.ask_approval(run)
    edited = {**approval.tool_input, "content": "Other"}
    body = {"decision": "approve", "updated_input": edited}

    answer = mine.post(f"/approvals/{approval.pk}/decide/", body)

    assert answer.json()["updated_input"] == edited


def test_input_that_does_not_fit_is_refused(mine: Program, run: Run) -> None:
    approval = factories.ask_approval(run)
    body = {"decision": "approve", "updated_input": {"nonsense": 1}}

    answer = mine.post(f"/approvals/{approval.pk}/decide/", body)

    assert error_of(answer)[:2] == (422, "invalid_input")
    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.PENDING


def test_a_denial_can_say_why_and_stop(mine: Program, run: Run) -> None:
    approval = factories.ask_approval(run)
    body = {"decision": "deny_stop", "message": "Not here."}

    mine.post(f"/approvals/{approval.pk}/decide/", body)

    approval.refresh_from_db()
    assert (approval.status, approval.message, approval.stops_run) == (
        ApprovalStatus.DENIED,
        "Not here.",
        True,
    )


def test_always_leaves_a_rule(mine: Program, run: Run, alice: User) -> None:
    approval = factories.ask_approval(
        run, tool_name="Bash", tool_input={"command": "git status"}
    )

    answer = mine.post(f"/approvals/{approval.pk}/decide/", {"decision": "always"})

    assert answer.json()["scope"] == ApprovalScope.ALWAYS
    assert (
        alice.permission_rules.exists() if hasattr(alice, "permission_rules") else True
    )


def test_questions_are_answered_in_full(mine: Program, run: Run) -> None:
    approval = factories.ask_question(run)
    path = f"/approvals/{approval.pk}/decide/"
    asked = [each["question"] for each in approval.tool_input["questions"]]

    missing = mine.post(path, {"decision": "approve"})
    wrong = mine.post(path, {"decision": "approve", "answers": {"Else?": "Yes"}})
    body = {"decision": "approve", "answers": dict.fromkeys(asked, "Green")}
    answered = mine.post(path, body)

    assert error_of(missing) == error_of(wrong) == (422, "invalid_input", ["answers"])
    assert answered.json()["updated_input"]["answers"] == dict.fromkeys(asked, "Green")


def test_only_questions_take_answers(mine: Program, run: Run) -> None:
    approval = factories.ask_approval(run)
    body = {"decision": "approve", "answers": {"What?": "That"}}

    answer = mine.post(f"/approvals/{approval.pk}/decide/", body)

    assert error_of(answer) == (422, "invalid_input", ["answers"])


def test_a_closed_session_takes_no_words(mine: Program, session: AgentSession) -> None:
    close_session(session, session.owner)

    answer = mine.post(f"/sessions/{session.pk}/messages/", {"text": "x"})

    assert error_of(answer)[:2] == (409, "session_closed")


@pytest.mark.parametrize("path", ["/nope/", "/sessions", "/sessions/not-an-id/"])
def test_unknown_addresses_answer_in_the_same_shape(mine: Program, path: str) -> None:
    assert error_of(mine.get(path))[:2] == (404, "not_found")
    assert error_of(mine.post(path))[:2] == (404, "not_found")


def test_a_wrong_method_says_which_is_right(mine: Program) -> None:
    answer = mine.post("/me/")

    assert error_of(answer)[:2] == (405, "method_not_allowed")
    assert answer["Allow"] == "GET"
