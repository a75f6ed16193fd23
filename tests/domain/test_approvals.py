from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents.domain import approvals, runs
from agents.domain.approvals import Decision, decide_approval
from agents.domain.requests import keep_request
from agents.errors import AlreadyDecidedError, InvalidInputError
from agents.models import (
    AgentSession,
    ApprovalRequest,
    AuditEntry,
    PermissionRule,
    Run,
    Share,
    User,
)
from agents.models.approvals import ApprovalScope, ApprovalStatus
from tests import factories
from tests.threads import at_once

APPROVE = Decision(is_approved=True)
DENY = Decision(is_approved=False, message=" Not\x00 now ")
BASH = {"command": "npm test"}


def resume(run: Run) -> Run:
    """The server is gone and another worker goes on with the run."""
    runs.reconcile_on_startup()
    claimed = runs.claim_run(run.pk, "second-worker")
    assert claimed is not None
    return claimed


def keep_schema(session: AgentSession, tool_name: str, schema: Any) -> None:
    body = {"tools": [{"name": tool_name, "input_schema": schema}]}
    keep_request(session.pk, json.dumps(body).encode(), max_bytes=100_000)


# Asking


def test_a_request_says_what_would_run_and_why(run: Run) -> None:
    approval = factories.ask_approval(run, agent_id="agent-1", rule_id="rule-1")

    assert approval.is_pending
    assert (approval.kind, approval.run) == ("approval", run)
    assert approval.reason == "Writing asks in this security mode."
    assert (approval.agent_id, approval.rule_id) == ("agent-1", "rule-1")
    assert approval.expires_at > timezone.now() + timedelta(days=29)
    assert AgentSession.objects.get().status == "waiting_approval"
    event = run.session.events.get(type="agent:approval_request")
    assert event.data["approval_id"] == str(approval.pk)
    assert event.data["tool_name"] == "Write"


def test_asking_again_finds_the_same_request(run: Run) -> None:
    assert factories.ask_approval(run) == factories.ask_approval(run)

    assert run.session.events.filter(type="agent:approval_request").count() == 1


def test_an_id_that_comes_with_another_call_is_noticed(run: Run) -> None:
    approval = factories.ask_approval(run, "toolu_1", "Bash", BASH)

    found = factories.ask_approval(run, "toolu_1", "Bash", {"command": "rm -r ."})

    assert found == approval
    assert approvals.is_about(found, "Bash", BASH)
    assert not approvals.is_about(found, "Bash", {"command": "rm -r ."})
    assert not approvals.is_about(found, "Write", BASH)


def test_questions_and_plans_are_kinds_of_their_own(run: Run) -> None:
    assert factories.ask_question(run).kind == "question"
    plan = factories.ask_approval(run, "toolu_p", "ExitPlanMode", {"plan": "1. Go"})
    assert plan.kind == "plan"


def test_the_hot_window_is_the_sites_or_the_callers(run: Run) -> None:
    usual = factories.ask_approval(run, "toolu_1")
    own = factories.ask_approval(run, "toolu_2", hot_seconds=5)

    assert usual.hot_until is not None
    assert own.hot_until is not None
    assert usual.hot_until - own.hot_until > timedelta(minutes=9)


def test_what_a_model_calls_things_is_cleaned_and_cut(run: Run) -> None:
    approval = approvals.open_approval(
        run,
        tool_use_id="id\x00" + "x" * 300,
        tool_name="To\ud800ol" + "y" * 300,
        tool_input={"a\x00": "b\udfff"},
        reason="why\x00",
    )

    again = approvals.open_approval(
        run, tool_use_id="id\x00" + "x" * 300, tool_name="Tool", tool_input={}
    )
    approval.refresh_from_db()
    assert approval == again
    assert approval.tool_use_id == ("id\ufffd" + "x" * 300)[:200]
    assert approval.tool_name == ("To\ufffdol" + "y" * 300)[:200]
    assert approval.tool_input == {"a\ufffd": "b\ufffd"}
    assert approval.reason == "why\ufffd"


# Deciding


def test_an_approval_is_stored_audited_and_told(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run)

    decided = decide_approval(
        approval, alice, Decision(is_approved=True, channel="inbox")
    )

    assert (decided.status, decided.decided_by) == ("approved", alice)
    assert (decided.channel, decided.scope) == ("inbox", "once")
    assert decided.decided_at is not None
    assert AgentSession.objects.get().status == "running"
    entry = AuditEntry.objects.get(action="approval.decided")
    assert (entry.actor, entry.target_id) == (alice, str(approval.pk))
    assert entry.data == {"status": "approved", "tool": "Write", "is_edited": False}
    event = run.session.events.get(type="agent:approval_resolved")
    assert (event.data["status"], event.data["decided_by"]) == ("approved", "alice")


def test_a_denial_keeps_the_persons_words(run: Run, alice: User) -> None:
    decided = decide_approval(factories.ask_approval(run), alice, DENY)

    assert (decided.status, decided.message) == ("denied", "Not\ufffd now")
    assert not decided.stops_run


def test_an_approval_never_stops_the_run(run: Run, alice: User) -> None:
    both = Decision(is_approved=True, stops_run=True)

    assert not decide_approval(factories.ask_approval(run), alice, both).stops_run


def test_the_second_decision_is_told_who_was_first(
    run: Run, alice: User, bob: User
) -> None:
    approval = factories.ask_approval(run)
    decide_approval(approval, alice, APPROVE)

    with pytest.raises(
        AlreadyDecidedError, match="alice approved this request already"
    ):
        decide_approval(ApprovalRequest.objects.get(), bob, DENY)

    approval.refresh_from_db()
    assert (approval.status, approval.decided_by) == ("approved", alice)
    assert AuditEntry.objects.filter(action="approval.decided").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_decisions_at_once_the_first_wins() -> None:
    alice, bob = factories.make_user("alice"), factories.make_user("bob")
    run = factories.start_turn(factories.make_session(alice))
    factories.ask_approval(run)

    def decide(user: User, decision: Decision) -> ApprovalRequest:
        return decide_approval(ApprovalRequest.objects.get(), user, decision)

    results = at_once(lambda: decide(alice, APPROVE), lambda: decide(bob, DENY))

    (winner,) = [item for item in results if isinstance(item, ApprovalRequest)]
    (loser,) = [item for item in results if isinstance(item, AlreadyDecidedError)]
    assert winner.decided_by is not None
    assert loser.user_message.startswith(winner.decided_by.username)
    assert ApprovalRequest.objects.get().status == winner.status
    assert run.session.events.filter(type="agent:approval_resolved").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_decision_and_a_stop_at_once_leave_one_truth() -> None:
    alice = factories.make_user("alice")
    run = factories.start_turn(factories.make_session(alice))
    approval = factories.ask_approval(run)

    decided, _ = at_once(
        lambda: decide_approval(approval, alice, APPROVE),
        lambda: factories.end_turn(run, stop_reason="cancelled"),
    )

    stored = ApprovalRequest.objects.get()
    was_refused = isinstance(decided, AlreadyDecidedError)
    assert stored.status == ("cancelled" if was_refused else "approved")
    assert AgentSession.objects.get().status == "stopped"


def test_what_expired_can_not_be_decided(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run)
    ApprovalRequest.objects.update(expires_at=timezone.now())
    approval.refresh_from_db()
    assert not approval.is_pending

    with pytest.raises(AlreadyDecidedError, match="expired"):
        decide_approval(approval, alice, APPROVE)

    assert approvals.expire_approvals() == 1
    with pytest.raises(AlreadyDecidedError, match="was expired already"):
        decide_approval(approval, alice, APPROVE)


def test_what_was_withdrawn_can_not_be_decided(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run)
    assert approvals.cancel_approval(approval)

    with pytest.raises(AlreadyDecidedError, match="was cancelled already"):
        decide_approval(approval, alice, APPROVE)

    assert not approvals.cancel_approval(approval)
    assert AgentSession.objects.get().status == "running"


def test_what_expires_together_expires(run: Run) -> None:
    for number in range(3):
        factories.ask_approval(run, f"toolu_{number}")
    runs.reconcile_on_startup()
    ApprovalRequest.objects.update(expires_at=timezone.now())

    assert approvals.expire_approvals() == 3
    statuses = ApprovalRequest.objects.values_list("status", flat=True)
    assert {*statuses} == {ApprovalStatus.EXPIRED}


def test_expiry_leaves_alone_what_has_time(run: Run) -> None:
    factories.ask_approval(run)

    assert approvals.expire_approvals() == 0


def test_a_timeout_denies_once(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run)

    assert approvals.deny_on_timeout(approval)

    approval.refresh_from_db()
    assert (approval.status, approval.message) == ("denied", "Approval timed out")
    assert (approval.channel, approval.decided_by) == ("system", None)
    assert not approvals.deny_on_timeout(approval)


def test_a_timeout_never_undoes_a_decision(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run)
    decide_approval(approval, alice, APPROVE)

    assert not approvals.deny_on_timeout(approval)

    approval.refresh_from_db()
    assert approval.status == "approved"


# Edited input


SCHEMA = {
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "timeout": {"type": "integer", "maximum": 600_000},
    },
    "required": ["command"],
    "additionalProperties": False,
}


def edit(approval: ApprovalRequest, user: User, updated: Any) -> ApprovalRequest:
    return decide_approval(
        approval, user, Decision(is_approved=True, updated_input=updated)
    )


def test_edited_input_is_stored_and_audited(run: Run, alice: User) -> None:
    keep_schema(run.session, "Bash", SCHEMA)
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)

    edited = edit(approval, alice, {"command": "npm t\x00", "timeout": 5})

    assert edited.updated_input == {"command": "npm t\ufffd", "timeout": 5}
    assert edited.tool_input == BASH
    assert AuditEntry.objects.get(action="approval.decided").data["is_edited"]


def test_an_edit_that_changes_nothing_is_no_edit(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)

    assert edit(approval, alice, dict(BASH)).updated_input is None


def test_the_input_of_a_denied_call_is_not_edited(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)

    denied = decide_approval(
        approval, alice, Decision(is_approved=False, updated_input={"x": 1})
    )

    assert denied.updated_input is None


@pytest.mark.parametrize(
    ("updated", "sentence"),
    [
        ({"command": 5}, "command: 5 is not of type 'string'"),
        ({}, "'command' is a required property"),
        ({"command": "ls", "timeout": 10**9}, "timeout: 1000000000 is greater"),
        ({"command": "ls", "shell": True}, "'shell' was unexpected"),
    ],
)
def test_edited_input_must_fit_the_tools_schema(
    run: Run, alice: User, updated: Any, sentence: str
) -> None:
    keep_schema(run.session, "Bash", SCHEMA)
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)

    with pytest.raises(InvalidInputError, match=sentence) as refusal:
        edit(approval, alice, updated)

    assert refusal.value.field == "updated_input"
    approval.refresh_from_db()
    assert approval.is_pending


def test_a_refusal_does_not_quote_a_whole_file(run: Run, alice: User) -> None:
    keep_schema(run.session, "Bash", {"properties": {"command": {"maxLength": 9}}})
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)

    with pytest.raises(InvalidInputError) as refusal:
        edit(approval, alice, {"command": "x" * 1_000_000})

    assert len(refusal.value.user_message) < 400


ODD_SCHEMAS = [
    None,
    "no schema",
    {"type": 5},
    {"$ref": "http://127.0.0.1:1/schema.json"},
    {"$ref": "#/$defs/missing"},
]


@pytest.mark.parametrize("schema", ODD_SCHEMAS)
@pytest.mark.parametrize(
    ("updated", "sentence"),
    [
        ({}, "“command” is missing"),
        ({"command": 1}, "“command” must stay a text"),
        ({"command": "ls", "cwd": "/"}, "“cwd” is not part of this call"),
    ],
)
def test_without_a_usable_schema_the_shape_must_stay(
    run: Run, alice: User, schema: Any, updated: Any, sentence: str
) -> None:
    if schema is not None:
        keep_schema(run.session, "Bash", schema)
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)

    with pytest.raises(InvalidInputError, match=sentence):
        edit(approval, alice, updated)

    assert edit(approval, alice, {"command": "ls"}).updated_input == {"command": "ls"}


def test_each_kind_of_value_has_a_word(run: Run, alice: User) -> None:
    values = {
        "text": "a",
        "switch": True,
        "whole": 1,
        "number": 1.5,
        "list": [],
        "object": {},
        "nothing": None,
    }
    words = ["a text", "true or false", "a whole number", "a number", "a list"]
    words += ["an object", "null"]
    approval = factories.ask_approval(run, tool_name="Odd", tool_input=values)

    for name, word in zip(values, words, strict=True):
        with pytest.raises(InvalidInputError, match=f"“{name}” must stay {word}"):
            edit(approval, alice, {**values, name: Ellipsis if name != "text" else 1})


def test_an_answer_to_a_question_is_not_held_against_a_schema(
    run: Run, alice: User
) -> None:
    keep_schema(run.session, "AskUserQuestion", {"required": ["never"]})
    approval = factories.ask_question(run)
    answer = {**factories.QUESTION, "answers": {"Which colour?": "Red"}}

    assert edit(approval, alice, answer).updated_input == answer


# Standing rules


@pytest.mark.parametrize(
    ("scope", "kept"),
    [(ApprovalScope.SESSION, "session"), (ApprovalScope.ALWAYS, "user")],
)
def test_a_wider_approval_leaves_a_rule(
    run: Run, alice: User, scope: ApprovalScope, kept: str
) -> None:
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)
    preview = approvals.preview_rule(approval)
    assert preview is not None

    decide_approval(approval, alice, Decision(is_approved=True, scope=scope))

    rule = PermissionRule.objects.get()
    assert (rule.scope, rule.owner, rule.created_from) == (kept, alice, approval)
    assert (rule.tool, rule.matcher, rule.effect) == ("Bash", preview.matcher, "allow")
    assert (rule.session == run.session) is (kept == "session")
    assert list(PermissionRule.objects.applying_to(run.session)) == [rule]
    assert AuditEntry.objects.get(action="rule.created").target_id == str(rule.pk)


def test_a_plain_approval_and_any_denial_leave_no_rule(run: Run, alice: User) -> None:
    decide_approval(factories.ask_approval(run, "toolu_1"), alice, APPROVE)
    decide_approval(
        factories.ask_approval(run, "toolu_2"),
        alice,
        Decision(is_approved=False, scope=ApprovalScope.ALWAYS),
    )

    assert not PermissionRule.objects.exists()


@pytest.mark.parametrize("scope", [ApprovalScope.SESSION, ApprovalScope.ALWAYS])
def test_where_no_rule_is_safe_only_this_call_can_be_approved(
    run: Run, alice: User, scope: ApprovalScope
) -> None:
    approval = factories.ask_question(run)
    assert approvals.preview_rule(approval) is None

    with pytest.raises(InvalidInputError, match="approve it once"):
        decide_approval(approval, alice, Decision(is_approved=True, scope=scope))

    approval.refresh_from_db()
    assert approval.is_pending
    assert not PermissionRule.objects.exists()


def test_a_rule_that_others_left_on_an_agent_is_seen_by_its_owner(
    run: Run, alice: User, bob: User, charlie: User
) -> None:
    Share.objects.create(session=run.session, user=bob, right="operate")
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)

    decide_approval(
        approval, bob, Decision(is_approved=True, scope=ApprovalScope.SESSION)
    )

    rule = PermissionRule.objects.get()
    assert list(PermissionRule.objects.visible_to(alice)) == [rule]
    assert list(PermissionRule.objects.visible_to(bob)) == [rule]
    assert not PermissionRule.objects.visible_to(charlie).exists()


def test_always_by_a_guest_says_nothing_about_the_owners_agents(
    run: Run, bob: User
) -> None:
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)

    decide_approval(
        approval, bob, Decision(is_approved=True, scope=ApprovalScope.ALWAYS)
    )

    assert not PermissionRule.objects.applying_to(run.session).exists()


# Using a decision once


def test_a_decision_is_consumed_once(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run)
    assert not approvals.consume(approval.pk)
    decide_approval(approval, alice, APPROVE)

    assert approvals.consume(approval.pk)
    assert not approvals.consume(approval.pk)


@pytest.mark.django_db(transaction=True)
def test_of_two_consumers_at_once_one_gets_it() -> None:
    alice = factories.make_user("alice")
    run = factories.start_turn(factories.make_session(alice))
    approval = factories.ask_approval(run)
    decide_approval(approval, alice, APPROVE)

    results = at_once(*[lambda: approvals.consume(approval.pk)] * 4)

    assert (results.count(True), results.count(False)) == (1, 3)


def test_a_grant_fits_the_same_call_once(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)
    runs.reconcile_on_startup()
    decide_approval(approval, alice, APPROVE)
    claimed = runs.claim_run(run.pk, "second-worker")
    assert claimed is not None

    assert approvals.take_grant(claimed, "Bash", {"command": "npm test "}) is None
    assert approvals.take_grant(claimed, "Write", BASH) is None
    assert approvals.take_grant(claimed, "Bash", dict(BASH)) == approval
    assert approvals.take_grant(claimed, "Bash", BASH) is None


def test_a_grant_fits_the_edited_input_too(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)
    edit(approval, alice, {"command": "npm run lint"})
    claimed = resume(run)

    assert approvals.take_grant(claimed, "Bash", {"command": "npm run"}) is None
    assert (
        approvals.take_grant(claimed, "Bash", {"command": "npm run lint"}) == approval
    )


@pytest.mark.django_db(transaction=True)
def test_of_two_equal_calls_at_once_one_gets_the_grant() -> None:
    alice = factories.make_user("alice")
    run = factories.start_turn(factories.make_session(alice))
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)
    decide_approval(approval, alice, APPROVE)
    claimed = resume(run)

    results = at_once(*[lambda: approvals.take_grant(claimed, "Bash", BASH)] * 3)

    assert sorted(result is None for result in results) == [False, True, True]


def test_a_denial_grants_nothing(run: Run, alice: User) -> None:
    decide_approval(
        factories.ask_approval(run, tool_name="Bash", tool_input=BASH), alice, DENY
    )

    assert approvals.take_grant(resume(run), "Bash", BASH) is None


def test_the_answer_of_a_living_waiter_is_no_grant(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)
    decide_approval(approval, alice, APPROVE)

    assert approvals.take_grant(run, "Bash", BASH) is None


def test_a_grant_ends_with_its_run(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run, tool_name="Bash", tool_input=BASH)
    decide_approval(approval, alice, APPROVE)
    factories.end_turn(run, stop_reason="cancelled")

    runs.retry_last_run(run.session)

    assert approvals.take_grant(factories.start_turn(run.session), "Bash", BASH) is None


def test_undelivered_decisions_come_oldest_first_and_only_once(
    run: Run, alice: User
) -> None:
    asked = [factories.ask_approval(run, f"toolu_{number}") for number in range(4)]
    decide_approval(asked[1], alice, DENY)
    decide_approval(asked[0], alice, APPROVE)
    decide_approval(asked[2], alice, APPROVE)
    approvals.consume(asked[2].pk)

    assert approvals.undelivered_decisions(run) == asked[:2]


def test_the_pending_count_is_what_a_person_may_answer(
    run: Run, alice: User, bob: User, charlie: User
) -> None:
    factories.ask_approval(run, "toolu_1")
    decide_approval(factories.ask_approval(run, "toolu_2"), alice, APPROVE)
    Share.objects.create(session=run.session, user=bob, right="view")
    Share.objects.create(session=run.session, user=charlie, right="operate")

    counts = [approvals.pending_count(user) for user in (alice, bob, charlie)]

    assert counts == [1, 0, 1]


def test_where_a_rule_asks_each_time_no_other_is_offered(run: Run) -> None:
    approval = factories.ask_approval(
        run, tool_name="Bash", tool_input=BASH, rule_id="the-asking-one"
    )

    assert approvals.preview_rule(approval) is None
