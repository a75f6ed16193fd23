"""A new standing rule answers what already waits for the same permission."""

from __future__ import annotations

import pytest

from agents.domain import approvals, releases, runs
from agents.domain.approvals import Decision, decide_approval
from agents.domain.people import save_person
from agents.domain.queries.approvals import ApprovalCard
from agents.domain.sessions import update_session
from agents.models import (
    AgentSession,
    AnalyticsEvent,
    ApprovalRequest,
    AuditEntry,
    PermissionRule,
    Run,
    User,
)
from agents.models.approvals import ApprovalScope, ApprovalStatus
from agents.models.runs import RunKind, RunState
from agents.models.sessions import SessionStatus
from agents.models.users import Role
from tests import factories
from tests.mcp.rows import found, make_server

LOOK = {"command": "git status"}
LOOK_TOO = {"command": "git status --short"}
PUSH = {"command": "git push"}
SESSION = Decision(is_approved=True, scope=ApprovalScope.SESSION)
ALWAYS = Decision(is_approved=True, scope=ApprovalScope.ALWAYS)


def ask(run: Run, tool_use_id: str, command: dict[str, str]) -> ApprovalRequest:
    return factories.ask_approval(run, tool_use_id, "Bash", command)


def is_open(approval: ApprovalRequest) -> bool:
    approval.refresh_from_db()
    return approval.is_pending


@pytest.fixture
def run(run: Run) -> Run:
    """In a jail: without one every command is asked about, whatever the rules say."""
    Run.objects.update(jailed=True)
    run.refresh_from_db()
    return run


@pytest.fixture
def elsewhere(run: Run) -> Run:
    """A turn of another agent of alice's."""
    other = factories.make_session(run.session.owner, "Another task")
    return factories.start_turn(other)


@pytest.fixture
def of_bob(bob: User) -> Run:
    return factories.start_turn(factories.make_session(bob))


def test_what_waits_in_the_session_is_approved_by_its_new_rule(
    run: Run, alice: User, elsewhere: Run
) -> None:
    first, same = ask(run, "toolu_1", LOOK), ask(run, "toolu_2", LOOK_TOO)
    wider, other = ask(run, "toolu_3", PUSH), ask(elsewhere, "toolu_4", LOOK)

    decide_approval(first, alice, SESSION)

    assert [is_open(each) for each in (same, wider, other)] == [False, True, True]
    rule = PermissionRule.objects.get()
    assert (same.status, same.channel, same.rule_id) == (
        ApprovalStatus.APPROVED,
        "rule",
        str(rule.pk),
    )
    assert (same.decided_by, same.scope) == (alice, ApprovalScope.SESSION)
    assert rule.hits == 1
    assert same.session.status == SessionStatus.WAITING_APPROVAL


def test_its_release_is_told_and_kept_like_any_decision(run: Run, alice: User) -> None:
    first, same = ask(run, "toolu_1", LOOK), ask(run, "toolu_2", LOOK)

    decide_approval(first, alice, SESSION)

    told = run.session.events.filter(type="agent:approval_resolved")
    assert [event.data["tool_use_id"] for event in told] == ["toolu_1", "toolu_2"]
    audited = AuditEntry.objects.get(action="approval.decided", target_id=same.pk)
    assert audited.data["rule"] == str(PermissionRule.objects.get())
    counted = AnalyticsEvent.objects.filter(type="approval.resolved")
    assert [row.data["decision"] for row in counted] == ["approved", "approved"]
    same.refresh_from_db()
    card = ApprovalCard(same, can_answer=True, viewer=alice)
    assert card.outcome.endswith(": approved by a rule of alice, for this session")


def test_always_speaks_to_all_agents_of_that_person(
    run: Run, alice: User, elsewhere: Run, of_bob: Run
) -> None:
    first, other = ask(run, "toolu_1", LOOK), ask(elsewhere, "toolu_2", LOOK)
    foreign = ask(of_bob, "toolu_3", LOOK)

    decide_approval(first, alice, ALWAYS)

    assert (is_open(other), is_open(foreign)) == (False, True)
    assert AgentSession.objects.get(pk=elsewhere.session_id).status == "running"


def test_a_parked_run_goes_on_by_the_rule(
    run: Run, alice: User, elsewhere: Run
) -> None:
    parked = ask(elsewhere, "toolu_1", LOOK)
    assert runs.park_run(elsewhere)

    decide_approval(ask(run, "toolu_2", LOOK), alice, ALWAYS)

    assert not is_open(parked)
    elsewhere.refresh_from_db()
    assert (elsewhere.state, elsewhere.kind) == (RunState.QUEUED, RunKind.RESUME)


def test_a_rule_that_asks_is_stronger(run: Run, alice: User) -> None:
    first, same = ask(run, "toolu_1", LOOK), ask(run, "toolu_2", LOOK)
    PermissionRule.objects.create(
        owner=alice, scope="user", tool="Bash", matcher="git:*", effect="ask"
    )

    decide_approval(first, alice, SESSION)

    assert is_open(same)


def test_without_a_jail_each_command_is_still_asked_about(
    run: Run, alice: User
) -> None:
    Run.objects.update(jailed=False)
    first, same = ask(run, "toolu_1", LOOK), ask(run, "toolu_2", LOOK)

    decide_approval(first, alice, SESSION)

    assert is_open(same)


def test_a_question_is_never_answered_by_a_rule(run: Run, alice: User) -> None:
    question = factories.ask_question(run)
    PermissionRule.objects.create(owner=alice, scope="user", tool="*", effect="allow")

    assert not releases.settle_by_policy(question)
    assert is_open(question)


def test_a_call_that_came_while_the_rule_was_made_finds_it(
    run: Run, alice: User
) -> None:
    late = ask(run, "toolu_1", LOOK)
    PermissionRule.objects.create(
        owner=alice, scope="user", tool="Bash", matcher="git status:*", effect="allow"
    )

    assert releases.settle_by_policy(late)
    assert not releases.settle_by_policy(late)
    assert approvals.consume(late.pk)


def test_a_session_that_was_deleted_meanwhile_is_passed_over(
    run: Run, alice: User
) -> None:
    waiting = ask(run, "toolu_1", LOOK)
    run.session.delete()

    assert not releases.settle_by_policy(waiting)


def test_a_wider_security_mode_lets_go_what_waits(run: Run, alice: User) -> None:
    waiting, question = ask(run, "toolu_1", PUSH), factories.ask_question(run)

    update_session(run.session, alice, security_mode="full")

    assert (is_open(waiting), is_open(question)) == (False, True)
    assert (waiting.status, waiting.channel, waiting.decided_by) == (
        ApprovalStatus.APPROVED,
        "policy",
        alice,
    )
    outcome = ApprovalCard(waiting, can_answer=True, viewer=alice).outcome
    assert outcome.endswith("approved by the security settings, changed by alice")


def test_a_tighter_security_mode_forbids_what_waits(run: Run, alice: User) -> None:
    waiting, question = ask(run, "toolu_1", LOOK), factories.ask_question(run)

    update_session(run.session, alice, security_mode="deny")

    assert (is_open(waiting), is_open(question)) == (False, False)
    assert waiting.status == question.status == ApprovalStatus.DENIED
    assert waiting.message == "This session may not use Bash."
    assert AuditEntry.objects.filter(action="approval.decided").count() == 2
    assert AuditEntry.objects.get(action="session.security_mode").data == {
        "before": "ask",
        "after": "deny",
    }


def test_a_mode_without_the_tool_forbids_what_waits(run: Run, alice: User) -> None:
    waiting = ask(run, "toolu_1", LOOK)

    update_session(run.session, alice, mode="ask")

    assert not is_open(waiting)
    assert waiting.status == ApprovalStatus.DENIED


def test_another_setting_leaves_waiting_requests_alone(run: Run, alice: User) -> None:
    waiting = ask(run, "toolu_1", LOOK)

    update_session(run.session, alice, effort="low", security_mode="ask")

    assert is_open(waiting)
    assert not AuditEntry.objects.filter(action="session.security_mode").exists()


def test_a_lowered_ceiling_forbids_what_waits_in_all_of_that_persons_sessions(
    run: Run, alice: User, bob: User, elsewhere: Run, of_bob: Run
) -> None:
    mine, too = ask(run, "toolu_1", LOOK), ask(elsewhere, "toolu_2", LOOK)
    theirs = ask(of_bob, "toolu_3", LOOK)
    User.objects.filter(pk=bob.pk).update(role=Role.OWNER)
    alice.security_ceiling = "sandbox"

    save_person(alice, bob)

    assert [is_open(each) for each in (mine, too, theirs)] == [False, False, True]
    assert mine.message.startswith("Your limit is the mode “sandbox”.")
    assert mine.decided_by == bob


def test_a_raised_ceiling_lets_go_what_its_session_would_have_run(
    run: Run, alice: User, bob: User
) -> None:
    update_session(run.session, alice, security_mode="full")
    User.objects.filter(pk=alice.pk).update(security_ceiling="ask")
    User.objects.filter(pk=bob.pk).update(role=Role.OWNER)
    waiting = ask(run, "toolu_1", LOOK)
    alice.security_ceiling = "full"

    save_person(alice, bob)

    assert not is_open(waiting)
    assert waiting.status == ApprovalStatus.APPROVED


def test_a_rule_that_denies_forbids_what_waits(run: Run, alice: User) -> None:
    waiting = ask(run, "toolu_1", LOOK)
    rule = PermissionRule.objects.create(
        owner=alice, scope="user", tool="Bash", matcher="git:*", effect="deny"
    )

    assert releases.settle_by_rule(rule) == 1
    assert not is_open(waiting)
    assert waiting.message == "The rule Bash(git:*) (user) denies this."


def test_what_only_the_process_knows_forbids_nothing(run: Run, alice: User) -> None:
    """Its configuration folder may be elsewhere, and it may be planning."""
    plan = {"file_path": "/elsewhere/plans/p.md", "content": "x"}
    waiting = factories.ask_approval(run, "toolu_1", "Write", plan)

    assert not releases.settle_by_policy(waiting)
    assert is_open(waiting)


def test_a_connected_servers_tool_is_let_go_like_one_that_writes(
    run: Run, alice: User
) -> None:
    make_server(alice, "Own", tools=(found("look"),))
    waiting = factories.ask_approval(run, "toolu_1", "mcp__own__look", {})

    assert not releases.settle_by_policy(waiting)
    update_session(run.session, alice, security_mode="full")

    assert not is_open(waiting)
    assert waiting.status == ApprovalStatus.APPROVED
