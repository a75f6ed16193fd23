from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agents.domain import (
    approvals,
    budgets,
    overspending,
    people,
    runs,
    sessions,
    spending,
)
from agents.domain.approvals import Decision
from agents.domain.people import BudgetChoice
from agents.domain.queries.explanation import pick_approval
from agents.domain.usage import Usage, record_usage
from agents.errors import InvalidInputError, NotAllowedError
from agents.models import (
    AgentSession,
    ApprovalRequest,
    AuditEntry,
    Budget,
    CostEntry,
    Run,
    TranscriptEntry,
    User,
)
from agents.models.approvals import ApprovalStatus
from agents.models.budgets import BudgetPeriod, BudgetScope
from agents.models.runs import RunKind, RunState, StopReason
from agents.models.sessions import SessionKind
from agents.models.users import Role
from agents.policy.limits import next_limit
from tests import factories

CENT = 10_000


def spend(session: AgentSession, usd_micros: int, message_id: str = "msg") -> None:
    """Output of a model that takes 15 dollars a million."""
    record_usage(
        session_id=session.pk,
        provider_id=None,
        message_id=f"{message_id}-{CostEntry.objects.count()}",
        model="claude-sonnet-5-5",
        usage=Usage(output_tokens=usd_micros // 15),
    )


def limit(session: AgentSession, **columns: int | None) -> None:
    AgentSession.objects.filter(pk=session.pk).update(**columns)
    session.refresh_from_db()


def warned(session: AgentSession) -> list[tuple[str, int]]:
    events = session.events.filter(type="agent:budget_warning").order_by("seq")
    return [(event.data["scope"], event.data["percent"]) for event in events]


def ask(run: Run) -> ApprovalRequest:
    """As the engine does when a call was refused: ask, and put the run aside."""
    approval = overspending.ask_to_exceed(run)
    assert runs.park_run(run)
    return approval


@pytest.fixture
def owner(db: None) -> User:
    return factories.make_user("olivia", role=Role.OWNER)


@pytest.mark.parametrize(
    ("base", "limit_before", "spent", "limit_after"),
    [
        (100, 100, 100, 200),
        (100, 100, 130, 200),
        (100, 100, 530, 600),
        (100, 300, 310, 400),
        (100, 300, 100, 400),
        (0, 0, 0, 1),
    ],
)
def test_a_raise_reaches_beyond_what_is_spent(
    base: int, limit_before: int, spent: int, limit_after: int
) -> None:
    assert next_limit(base, limit_before, spent) == limit_after


@pytest.mark.parametrize(
    ("period", "start"),
    [
        (BudgetPeriod.EVER, None),
        (BudgetPeriod.DAY, datetime(2026, 3, 17, tzinfo=UTC)),
        (BudgetPeriod.MONTH, datetime(2026, 3, 1, tzinfo=UTC)),
    ],
)
def test_a_period_begins_at_midnight(
    period: BudgetPeriod, start: datetime | None
) -> None:
    now = datetime(2026, 3, 17, 15, 4, 5, 6, tzinfo=UTC)

    assert spending.period_start(period, now) == start


def test_it_warns_once_at_80_percent(run: Run) -> None:
    limit(run.session, max_budget_usd_micros=100 * CENT)

    told = []
    for _ in range(4):
        spend(run.session, 27 * CENT)
        told.append(warned(run.session))

    assert told == [[], [], [("session", 81)], [("session", 81)]]
    (notice,) = run.session.messages.filter(content__kind="budget")
    assert "81 % of the budget of this session" in notice.text


def test_one_that_is_jumped_over_is_warned_of_all_the_same(run: Run) -> None:
    limit(run.session, run_budget_usd_micros=100 * CENT)

    spend(run.session, 150 * CENT)

    assert warned(run.session) == [("run", 150)]
    (notice,) = run.session.messages.filter(content__kind="budget_used_up")
    assert notice.text.startswith("The budget of this turn is used up: $1.50 of $1.00.")


def test_the_narrowest_that_is_used_up_is_named(run: Run, owner: User) -> None:
    session = run.session
    limit(session, run_budget_usd_micros=CENT, max_budget_usd_micros=CENT)
    budgets.set_limit(CENT, "ever", actor=owner)
    assert budgets.find_used_up(session.pk) is None

    spend(session, 2 * CENT)

    account = budgets.find_used_up(session.pk)
    assert account is not None
    assert account.scope == BudgetScope.RUN
    beside = budgets.find_used_up(session.pk, is_side=True)
    assert beside is not None
    assert beside.scope == BudgetScope.SESSION
    assert "this turn" in budgets.refusal_of_call(session.pk)


def test_without_a_limit_nothing_is_refused(run: Run) -> None:
    spend(run.session, 10_000 * CENT)

    assert budgets.refusal_of_call(run.session_id) == ""
    assert not Budget.objects.exists()


@pytest.mark.parametrize("spender", ["itself", "asked"])
def test_a_call_of_unknown_price_makes_every_sum_a_least_one(
    run: Run, owner: User, spender: str
) -> None:
    session = run.session
    limit(session, run_budget_usd_micros=CENT, max_budget_usd_micros=CENT)
    budgets.set_limit(CENT, "ever", actor=owner)
    budgets.set_limit(CENT, "day", actor=owner, user=session.owner)
    asked = {"kind": SessionKind.INVOKED_AGENT, "parent_session": session}
    child = AgentSession.objects.create(owner=session.owner, name="child", **asked)

    record_usage(
        session_id=session.pk if spender == "itself" else child.pk,
        provider_id=None,
        message_id="msg",
        model="nobody-knows",
        usage=Usage(output_tokens=1_000_000),
    )

    accounts = spending.accounts_of(session, run)
    assert [account.scope for account in accounts] == [*BudgetScope]
    assert {account.figures for account in accounts} == {"at least $0.00 of $0.0100"}


@pytest.mark.parametrize(("micros", "told"), [(CENT, 1), (None, 0)])
def test_a_turn_says_once_that_its_budgets_miss_a_price(
    run: Run, micros: int | None, told: int
) -> None:
    limit(run.session, max_budget_usd_micros=micros)

    for answer in ("first", "second"):
        record_usage(
            session_id=run.session_id,
            provider_id=None,
            message_id=answer,
            model="nobody-knows",
            usage=Usage(output_tokens=5),
        )

    assert run.session.messages.filter(content__kind="unpriced").count() == told


def test_what_an_asked_session_spends_counts_for_those_above(run: Run) -> None:
    session = run.session
    limit(session, max_budget_usd_micros=CENT, run_budget_usd_micros=CENT)
    child = AgentSession.objects.create(
        owner=session.owner,
        name="child",
        kind=SessionKind.INVOKED_AGENT,
        parent_session=session,
    )
    spend(child, 2 * CENT)

    for each in (session, child):
        account = budgets.find_used_up(each.pk)
        assert account is not None
        assert account.spent_usd_micros == pytest.approx(2 * CENT, abs=15)
    assert warned(child) == [("session", 199)]


@pytest.mark.parametrize("scope", ["user", "site"])
def test_wide_budgets_count_all_sessions_they_are_about(
    run: Run, owner: User, bob: User, scope: str
) -> None:
    whose = run.session.owner if scope == "user" else None
    budgets.set_limit(10 * CENT, "month", actor=owner, user=whose)
    other = factories.make_session(run.session.owner)
    foreign = factories.make_session(bob)

    spend(other, 6 * CENT)
    spend(foreign, 6 * CENT)

    account = budgets.find_used_up(run.session_id)
    assert (account is not None) == (scope == "site")
    spend(other, 6 * CENT)
    assert budgets.find_used_up(run.session_id) is not None
    assert (budgets.find_used_up(foreign.pk) is not None) == (scope == "site")


def test_a_new_period_begins_with_nothing_spent_raised_or_warned(
    run: Run, owner: User
) -> None:
    budgets.set_limit(10 * CENT, "day", actor=owner)
    spend(run.session, 12 * CENT)
    approval = ask(run)
    approvals.decide_approval(approval, owner, Decision(is_approved=True))
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    CostEntry.objects.update(created_at=long_ago)
    Budget.objects.update(counted_from=long_ago)

    (account,) = spending.accounts_of(run.session, None)

    assert (account.spent_usd_micros, account.raised_usd_micros) == (0, 0)
    spend(run.session, 9 * CENT)
    assert len(warned(run.session)) == 2


def test_an_approved_raise_queues_the_run_again(run: Run, alice: User) -> None:
    limit(run.session, max_budget_usd_micros=10 * CENT)
    spend(run.session, 11 * CENT)
    approval = ask(run)
    run.refresh_from_db()
    assert run.state == RunState.PARKED

    approvals.decide_approval(approval, alice, Decision(is_approved=True))

    run.refresh_from_db()
    # The model had heard nothing yet, so its prompt is still to be said.
    assert (run.state, run.kind) == (RunState.QUEUED, RunKind.PROMPT)
    (account,) = spending.accounts_of(run.session, run)
    assert account.limit_usd_micros == 20 * CENT
    assert budgets.find_used_up(run.session_id) is None
    assert AuditEntry.objects.filter(action="budget.raised").exists()
    spend(run.session, 6 * CENT)
    assert [scope for scope, _ in warned(run.session)] == ["session", "session"]


def test_a_run_that_had_begun_is_told_to_go_on(run: Run, alice: User) -> None:
    limit(run.session, max_budget_usd_micros=10 * CENT)
    factories.remember(run)
    entry = run.branch.sdk_session_id
    prompt = run.trigger_message

    first = TranscriptEntry.objects.filter(sdk_session_id=str(entry)).first()
    assert first is not None
    prompt.sdk_uuid = first.uuid
    prompt.save(update_fields=["sdk_uuid"])
    spend(run.session, 11 * CENT)

    approvals.decide_approval(ask(run), alice, Decision(is_approved=True))

    run.refresh_from_db()
    assert (run.state, run.kind) == (RunState.QUEUED, RunKind.RESUME)


def test_a_denied_raise_ends_the_run(run: Run, alice: User) -> None:
    limit(run.session, max_budget_usd_micros=10 * CENT)
    spend(run.session, 11 * CENT)

    approvals.decide_approval(ask(run), alice, Decision(is_approved=False))

    run.refresh_from_db()
    assert run.state == RunState.FINISHED
    assert (run.stop_reason, run.success) == (StopReason.BUDGET_EXCEEDED, False)


def test_only_owners_raise_what_only_owners_set(
    run: Run, alice: User, owner: User, bob: User
) -> None:
    budgets.set_limit(10 * CENT, "month", actor=owner, user=alice)
    spend(run.session, 11 * CENT)
    approval = ask(run)

    with pytest.raises(NotAllowedError):
        approvals.decide_approval(approval, alice, Decision(is_approved=True))

    answerable = ApprovalRequest.objects.answerable_by
    assert answerable(alice).exists()
    assert not answerable(bob).exists()
    assert list(answerable(owner).pending()) == [approval]
    approvals.decide_approval(approval, owner, Decision(is_approved=True))
    assert budgets.find_used_up(run.session_id) is None


def test_an_owner_sees_no_other_request_of_a_foreign_session(
    run: Run, owner: User
) -> None:
    factories.ask_approval(run)
    limit(run.session, max_budget_usd_micros=CENT)
    spend(run.session, 2 * CENT)
    overspending.ask_to_exceed(run)

    assert not ApprovalRequest.objects.visible_to(owner).exists()


def test_one_raise_lets_everybody_go_on_who_waits_for_it(
    run: Run, alice: User, owner: User
) -> None:
    other = factories.start_turn(factories.make_session(alice))
    budgets.set_limit(10 * CENT, "month", actor=owner, user=alice)
    spend(run.session, 11 * CENT)
    first, second = ask(run), ask(other)

    approvals.decide_approval(first, owner, Decision(is_approved=True))

    second.refresh_from_db()
    other.refresh_from_db()
    assert second.status == ApprovalStatus.APPROVED
    assert other.state == RunState.QUEUED


@pytest.mark.django_db(transaction=True)
def test_a_wider_limit_lets_go_on_too(run: Run, alice: User) -> None:
    owner = factories.make_user("olivia", role=Role.OWNER)
    budgets.set_limit(10 * CENT, "month", actor=owner, user=alice)
    spend(run.session, 11 * CENT)
    approval = ask(run)

    people.save_budget(BudgetChoice(50 * CENT, "month"), owner, person=alice)

    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.APPROVED


@pytest.mark.django_db(transaction=True)
def test_no_change_of_policy_answers_a_request_about_money(
    run: Run, alice: User, owner: User
) -> None:
    limit(run.session, max_budget_usd_micros=CENT)
    spend(run.session, 2 * CENT)
    asked = ask(run)

    sessions.update_session(run.session, alice, security_mode="deny")
    alice.security_ceiling = "deny"
    people.save_person(alice, owner)

    asked.refresh_from_db()
    assert asked.is_pending
    assert pick_approval(alice, asked.pk) is None


def test_settings_that_name_a_limit_begin_anew(run: Run, alice: User) -> None:
    limit(run.session, max_budget_usd_micros=10 * CENT)
    spend(run.session, 11 * CENT)
    approvals.decide_approval(ask(run), alice, Decision(is_approved=True))

    sessions.update_session(run.session, alice, max_budget_usd_micros=12 * CENT)

    (account,) = spending.accounts_of(run.session, None)
    assert account.limit_usd_micros == 12 * CENT


def test_room_that_came_meanwhile_is_the_answer(run: Run) -> None:
    approval = overspending.ask_to_exceed(run)

    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.APPROVED
    assert runs.park_run(run)
    run.refresh_from_db()
    assert run.state == RunState.QUEUED


@pytest.mark.parametrize("decision", [{"scope": "always"}, {"updated_input": {}}])
def test_a_budget_has_no_rule_and_no_input(
    run: Run, alice: User, decision: dict[str, Any]
) -> None:
    limit(run.session, max_budget_usd_micros=CENT)
    spend(run.session, 2 * CENT)

    with pytest.raises(InvalidInputError):
        approvals.decide_approval(
            ask(run), alice, Decision(is_approved=True, **decision)
        )


def test_a_limit_that_is_taken_away_binds_no_more(run: Run, owner: User) -> None:
    budgets.set_limit(CENT, "month", actor=owner)
    spend(run.session, 2 * CENT)
    assert budgets.find_used_up(run.session_id) is not None

    budgets.set_limit(None, "month", actor=owner)

    assert budgets.find_used_up(run.session_id) is None
    assert Budget.objects.count() == 1
