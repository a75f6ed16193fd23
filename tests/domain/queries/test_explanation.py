"""Why a call may run or not."""

from __future__ import annotations

from uuid import uuid4

import pytest

from agents.domain.queries.explanation import (
    explain_call,
    pick_approval,
    pick_message,
)
from agents.models import AgentSession, PermissionRule, Run, Share, User
from agents.policy.decision import GUARD_NAMES, ToolCall
from agents.policy.modes import Effect
from tests import factories

STATUS = ToolCall("Bash", {"command": "git status"})


@pytest.fixture
def jailed(run: Run) -> Run:
    Run.objects.update(jailed=True)
    return run


def test_every_guard_is_named_in_order_and_the_mode_decides(
    jailed: Run, alice: User
) -> None:
    found = explain_call(jailed.session, STATUS, alice)

    assert len(found.steps) == len(GUARD_NAMES)
    assert [step.effect for step in found.steps[:-1]] == [None] * 8
    last = found.steps[-1]
    assert (last.label, last.effect) == ("Security mode", Effect.ASK)
    assert last.reason == found.verdict.reason == "Running a command needs approval."
    assert found.notes == ()


def test_the_rule_that_spoke_is_there_to_be_opened(jailed: Run, alice: User) -> None:
    rule = PermissionRule.objects.create(
        owner=alice, scope="user", tool="Bash", matcher="git:*", effect="deny"
    )

    found = explain_call(jailed.session, STATUS, alice)

    (step,) = [step for step in found.steps if step.rule]
    assert (step.label, step.effect, step.rule) == (
        "Rules that ask or deny",
        Effect.DENY,
        rule,
    )
    assert found.verdict.effect is Effect.DENY


def test_somebody_elses_rule_is_not_linked(jailed: Run, alice: User, bob: User) -> None:
    PermissionRule.objects.create(owner=alice, scope="user", tool="Bash", effect="deny")

    found = explain_call(jailed.session, STATUS, bob)

    assert found.verdict.effect is Effect.DENY
    assert not any(step.rule for step in found.steps)


def test_explaining_changes_and_counts_nothing(jailed: Run, alice: User) -> None:
    rule = PermissionRule.objects.create(
        owner=alice, scope="user", tool="Bash", effect="allow"
    )

    assert explain_call(jailed.session, STATUS, alice).verdict.effect is Effect.ALLOW

    rule.refresh_from_db()
    assert (rule.hits, rule.last_hit_at) == (0, None)


def test_what_only_the_process_knows_is_said(
    session: AgentSession, alice: User
) -> None:
    outside = ToolCall("Read", {"file_path": "/elsewhere/x"})

    unknown = explain_call(session, STATUS, alice)
    paths = explain_call(session, outside, alice)

    assert "isn’t known" in unknown.notes[0]
    assert "may be elsewhere" in paths.notes[-1]


def test_a_run_without_a_jail_is_named(run: Run, alice: User) -> None:
    Run.objects.update(jailed=False)

    found = explain_call(run.session, STATUS, alice)

    assert found.notes == ("The session’s last process ran without a jail.",)


def test_only_calls_that_one_may_see_are_picked(
    run: Run, alice: User, bob: User
) -> None:
    asked = factories.ask_approval(run, "toolu_1", "Bash", {"command": "ls"})
    call = run.session.messages.get(tool_use_id="toolu_1")

    for pick, pk in ((pick_message, call.pk), (pick_approval, asked.pk)):
        picked = pick(alice, pk)
        assert picked is not None
        assert (picked.session, picked.tool_name, picked.tool_input) == (
            run.session,
            "Bash",
            {"command": "ls"},
        )
        assert pick(bob, pk) is None
        assert pick(alice, uuid4()) is None
    said = run.session.messages.filter(tool_use_id="").first()
    assert said is not None
    assert pick_message(alice, said.pk) is None


def test_who_looks_on_may_ask_why(run: Run, bob: User) -> None:
    call = factories.call_tool(run)
    Share.objects.create(session=run.session, user=bob, right="view")

    assert pick_message(bob, call.pk) is not None
