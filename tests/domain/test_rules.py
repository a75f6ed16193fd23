"""Standing rules that people write, and what they would have done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.domain import replay, rules
from agents.domain.approvals import Decision, decide_approval
from agents.domain.rules import Draft
from agents.errors import InvalidInputError, NotAllowedError
from agents.models import (
    AgentSession,
    ApprovalRequest,
    AuditEntry,
    PermissionRule,
    Run,
    User,
)
from agents.models.approvals import ApprovalStatus
from agents.models.users import Role
from agents.policy.modes import Effect
from agents.policy.rules import Rule
from tests import factories

APPROVE, DENY = Decision(is_approved=True), Decision(is_approved=False)


def draft(**fields: Any) -> Draft:
    defaults = {
        "effect": "allow",
        "tool": "Bash",
        "matcher": "git status:*",
        "scope": "user",
    }
    return Draft(**{**defaults, **fields})


def refused(changed: Draft, user: User) -> tuple[str | None, str]:
    with pytest.raises(InvalidInputError) as caught:
        rules.save_rule(changed, user)
    assert not PermissionRule.objects.exists()
    return caught.value.field, caught.value.user_message


def test_a_rule_is_kept_and_audited(alice: User) -> None:
    later = timezone.now() + timedelta(hours=1)

    rule = rules.save_rule(
        draft(tool=" Bash ", matcher=" ls:* ", expires_at=later), alice
    )

    rule.refresh_from_db()
    assert (rule.owner, rule.notation, rule.effect) == (alice, "Bash(ls:*)", "allow")
    assert (rule.scope, rule.session, rule.mode) == ("user", None, "")
    assert rule.expires_at == later
    entry = AuditEntry.objects.get(action="rule.created")
    assert (entry.actor, entry.data["rule"]) == (alice, "allow Bash(ls:*)")


def test_a_session_or_a_mode_is_kept_only_with_its_scope(
    session: AgentSession, alice: User
) -> None:
    both = {"session": session, "mode": "ask"}

    of_session = rules.save_rule(draft(scope="session", **both), alice)
    of_mode = rules.save_rule(draft(scope="mode", **both), alice)
    of_user = rules.save_rule(draft(scope="user", **both), alice)

    assert (of_session.session, of_session.mode) == (session, "")
    assert (of_mode.session, of_mode.mode) == (None, "ask")
    assert (of_user.session, of_user.mode) == (None, "")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tool": "Bush"}, "tool"),
        ({"matcher": "git *"}, "matcher"),
        ({"scope": "site"}, "scope"),
        ({"scope": "session"}, "session"),
        ({"scope": "mode", "mode": "no-such"}, "mode"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_field(
    alice: User, change: dict[str, str], field: str
) -> None:
    found, sentence = refused(draft(**change), alice)

    assert found == field
    assert sentence.endswith(".")


def test_the_same_rule_is_not_kept_twice(alice: User) -> None:
    rules.save_rule(draft(), alice)

    with pytest.raises(InvalidInputError, match="exists already"):
        rules.save_rule(draft(), alice)

    assert PermissionRule.objects.count() == 1


def test_only_ones_own_sessions_get_rules(session: AgentSession, bob: User) -> None:
    assert refused(draft(scope="session", session=session), bob)[0] == "session"


def test_owners_make_rules_for_everybody(db: None) -> None:
    olivia = factories.make_user("olivia", role=Role.OWNER)

    assert rules.save_rule(draft(scope="site"), olivia).scope == "site"


def test_viewers_make_no_rules(db: None) -> None:
    viewer = factories.make_user("vera", role=Role.VIEWER)

    with pytest.raises(NotAllowedError):
        rules.save_rule(draft(), viewer)


@pytest.mark.parametrize(
    ("ceiling", "effect", "is_refused"),
    [
        ("allowlist", "allow", True),
        ("allowlist", "deny", False),
        ("sandbox", "allow", True),
        ("ask", "allow", False),
    ],
)
def test_a_person_below_ask_does_not_write_an_allow_list_of_their_own(
    alice: User, ceiling: str, effect: str, is_refused: bool
) -> None:
    alice.security_ceiling = ceiling

    if is_refused:
        assert refused(draft(effect=effect), alice)[0] == "effect"
    else:
        assert rules.save_rule(draft(effect=effect), alice).effect == effect


def test_a_new_rule_answers_what_waits(run: Run, alice: User) -> None:
    waiting = factories.ask_approval(run, "toolu_1", "Bash", {"command": "git push"})

    rules.save_rule(draft(effect="deny", matcher="git push:*"), alice)

    waiting.refresh_from_db()
    assert (waiting.status, waiting.channel) == (ApprovalStatus.DENIED, "rule")


def test_a_revoked_rule_is_gone_and_audited(alice: User, bob: User) -> None:
    rule = rules.save_rule(draft(), alice)

    rules.revoke_rule(rule, bob)

    assert not PermissionRule.objects.exists()
    entry = AuditEntry.objects.get(action="rule.revoked")
    assert entry.actor == bob
    assert entry.data == {
        "rule": "allow Bash(git status:*)",
        "scope": "user",
        "owner": "alice",
        "hits": 0,
    }


def test_who_may_revoke(session: AgentSession, alice: User, bob: User) -> None:
    olivia = factories.make_user("olivia", role=Role.OWNER)
    on_session = PermissionRule.objects.create(
        owner=bob, scope="session", session=session, tool="Bash", effect="allow"
    )
    for_all = rules.save_rule(draft(scope="site"), olivia)
    own = rules.save_rule(draft(scope="user"), alice)

    def revocable(user: User) -> set[PermissionRule]:
        return set(PermissionRule.objects.revocable_by(user))

    assert revocable(alice) == {on_session, own}
    assert revocable(bob) == {on_session}
    assert revocable(olivia) == {for_all}


# What a rule would have done


def call(run: Run, number: int, command: str, **fields: Any) -> ApprovalRequest:
    given = {"command": command}
    return factories.ask_approval(run, f"toolu_{number}", "Bash", given, **fields)


def test_past_calls_and_what_people_said_to_them(run: Run, alice: User) -> None:
    decide_approval(call(run, 1, "git status"), alice, APPROVE)
    decide_approval(call(run, 2, "git status --short"), alice, DENY)
    call(run, 3, "git status -s")
    call(run, 4, "git push")
    factories.call_tool(run, "toolu_5", "Bash", {"command": "cd x && git status"})

    found = rules.replay_draft(draft(), alice)

    assert (found.matched, found.looked_at) == (3, 5)
    assert (found.approved, found.denied, found.unasked) == (1, 1, 1)
    shown = [(past.message.tool_use_id, past.decision) for past in found.shown]
    assert shown == [("toolu_3", ""), ("toolu_2", "denied"), ("toolu_1", "approved")]
    assert "git status -s" in found.shown[0].view.summary
    assert not found.is_bounded


def test_what_a_rule_decided_is_nobodys_decision(run: Run, alice: User) -> None:
    call(run, 1, "git status")
    Run.objects.update(jailed=True)
    rules.save_rule(draft(), alice)
    assert ApprovalRequest.objects.get().status == ApprovalStatus.APPROVED

    found = rules.replay_draft(draft(effect="deny"), alice)

    assert (found.matched, found.approved, found.denied) == (1, 0, 0)


def test_a_rule_that_tightens_is_tried_with_its_own_eyes(run: Run, alice: User) -> None:
    call(run, 1, "ls && /bin/rm -r build")

    denied = rules.replay_draft(draft(effect="deny", matcher="rm:*"), alice)
    allowed = rules.replay_draft(draft(effect="allow", matcher="rm:*"), alice)

    assert (denied.matched, allowed.matched) == (1, 0)


def test_the_scope_says_whose_calls_are_tried(run: Run, alice: User, bob: User) -> None:
    call(run, 1, "git status")
    other = factories.start_turn(factories.make_session(alice, mode="ask"))
    call(other, 2, "git status")
    call(factories.start_turn(factories.make_session(bob)), 3, "git status")

    def tried(**scope: Any) -> int:
        return rules.replay_draft(draft(**scope), alice).matched

    assert tried(scope="user") == 2
    assert tried(scope="session", session=run.session) == 1
    assert tried(scope="mode", mode="ask") == 1


@pytest.mark.parametrize(
    ("tool", "matcher", "expected"),
    [
        ("Write", "src/**", 1),
        ("Write", "", 2),
        ("fetch", "domain:example.org", 1),
        ("mcp__openswarm__fetch", "", 1),
        ("mcp__git", "", 1),
        ("mcp__git__*", "", 1),
        ("Glob", "**", 1),
        ("*", "", 5),
    ],
)
def test_every_kind_of_rule_finds_its_calls(
    run: Run, alice: User, tool: str, matcher: str, expected: int
) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Write", {"file_path": "src/deep/a.py", "content": "x"}),
        ("Write", {"file_path": "README", "content": "x"}),
        ("mcp__openswarm__fetch", {"url": "https://docs.example.org/a"}),
        ("mcp__git__log", {"path": "x"}),
        ("Glob", {"pattern": "*.py"}),
    ]
    for number, (name, given) in enumerate(calls):
        factories.call_tool(run, f"toolu_{number}", name, given)

    found = rules.replay_draft(draft(tool=tool, matcher=matcher), alice)

    assert found.matched == expected


def test_the_look_back_is_bounded_and_says_so(
    run: Run, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "REPLAYED_CALLS", 2)
    for number in range(3):
        factories.call_tool(run, f"toolu_{number}", "Bash", {"command": "git status"})

    found = rules.replay_draft(draft(), alice)

    assert (found.matched, found.looked_at, found.is_bounded) == (2, 2, True)
    assert found.shown[0].message.tool_use_id == "toolu_2"


def test_the_number_of_queries_is_constant(run: Run, alice: User) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            found = replay.replay_rule(
                Rule("Bash", Effect.ALLOW, matcher="git status:*"),
                AgentSession.objects.filter(owner=alice),
            )
            assert [past.url for past in found.shown]
        return len(queries)

    call(run, 1, "git status")
    one = count()
    for number in range(2, 5):
        call(run, number, "git status")

    assert one == count() == 4
