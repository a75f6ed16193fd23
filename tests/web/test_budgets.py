"""Budgets in the settings, on a person's page and as a card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.domain import budgets, overspending
from agents.domain.accounts import preferences_of
from agents.models import AgentSession, ApprovalRequest, Budget, CostEntry, Run, User
from agents.models.approvals import ApprovalStatus
from agents.models.users import Role
from tests import factories
from tests.dom import Node, parse

SignIn = Callable[[User], Client]
LIST = "/settings/budgets/"
DOLLAR = 1_000_000

pytestmark = pytest.mark.django_db


def page_of(response: Any) -> Node:
    return parse(response.content.decode())


@pytest.fixture
def owner(db: None) -> User:
    return factories.make_user("olivia", role=Role.OWNER)


def used_up(run: Run, owner: User, **whose: Any) -> ApprovalRequest:
    """A request to exceed a budget of one dollar."""
    budgets.set_limit(DOLLAR, "month", actor=owner, **whose)
    CostEntry.objects.create(
        user=run.session.owner,
        session=run.session,
        message_id="m",
        model="m",
        usd_micros=DOLLAR + 1,
    )
    return overspending.ask_to_exceed(run)


def test_an_owner_sets_the_sites_budget(owner: User, sign_in: SignIn) -> None:
    client = sign_in(owner)

    answer = client.post(
        reverse("site_budget"), {"budget-limit": "12.50", "budget-period": "day"}
    )

    assert answer.status_code == 302
    budget = Budget.objects.get()
    assert (budget.scope, budget.limit_usd_micros, budget.period) == (
        "site",
        12_500_000,
        "day",
    )
    page = client.get(LIST).content.decode()
    assert 'value="12.50"' in page
    assert "$0.00 of $12.50 (0 %), each day" in page


def test_a_price_that_is_unknown_is_no_zero(
    owner: User, alice: User, sign_in: SignIn
) -> None:
    for whose in (None, alice):
        budgets.set_limit(DOLLAR, "month", actor=owner, user=whose)
    for each, cost in enumerate([DOLLAR // 2, None]):
        CostEntry.objects.create(
            user=alice, message_id=f"m{each}", model="m", usd_micros=cost
        )

    page = sign_in(owner).get(LIST).content.decode()

    assert page.count("at least $0.5000 of $1.00 (50 %), each month") == 2


@pytest.mark.parametrize("limit", ["-1", "0", "much", "1.005"])
def test_a_limit_that_is_none_is_refused_and_kept(
    owner: User, sign_in: SignIn, limit: str
) -> None:
    answer = sign_in(owner).post(
        reverse("site_budget"), {"budget-limit": limit, "budget-period": "day"}
    )

    assert answer.status_code == 422
    assert f'value="{limit}"' in answer.content.decode()
    assert not Budget.objects.exists()


def test_others_see_what_binds_them_and_change_nothing(
    alice: User, owner: User, sign_in: SignIn
) -> None:
    budgets.set_limit(3 * DOLLAR, "ever", actor=owner, user=alice)
    client = sign_in(alice)

    page = client.get(LIST).content.decode()
    answer = client.post(reverse("site_budget"), {"budget-limit": "1"})

    assert "$0.00 of $3.00" in page
    assert "Save budget" not in page
    assert "olivia" not in page
    assert answer.status_code == 404
    assert Budget.objects.count() == 1


def test_a_persons_budget_is_set_on_their_page(
    alice: User, owner: User, sign_in: SignIn
) -> None:
    client = sign_in(owner)
    path = reverse("person_edit", args=[alice.pk])
    kept = {
        "role": alice.role,
        "security_ceiling": alice.security_ceiling,
        "is_active": "on",
    }

    client.post(path, {**kept, "budget-limit": "7", "budget-period": "month"})

    assert alice.budget.limit_usd_micros == 7 * DOLLAR
    assert "$0.00 of $7.00" in client.get(LIST).content.decode()
    client.post(path, {**kept, "budget-limit": "", "budget-period": "month"})
    assert "No limit" in client.get(path).content.decode()


def test_the_page_takes_the_same_queries_for_one_and_for_three(
    alice: User, owner: User, sign_in: SignIn
) -> None:
    client = sign_in(owner)

    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            client.get(LIST)
        return len(queries)

    budgets.set_limit(DOLLAR, "month", actor=owner, user=alice)
    count()  # the first page of a new account makes its preferences
    one = count()
    for name in ("dora", "emil"):
        person = factories.make_user(name)
        budgets.set_limit(DOLLAR, "month", actor=owner, user=person)

    assert count() == one


def test_the_card_says_what_is_spent_and_raises(
    run: Run, alice: User, owner: User, sign_in: SignIn
) -> None:
    AgentSession.objects.filter(pk=run.session_id).update(
        max_budget_usd_micros=DOLLAR, cost_usd_micros=DOLLAR + 1
    )
    approval = overspending.ask_to_exceed(run)
    client = sign_in(alice)

    page = client.get(f"/sessions/{run.session_id}/").content.decode()
    client.post(reverse("approval_decide", args=[approval.pk]), {"decision": "approve"})

    assert "The budget of this session is used up: $1.00 of $1.00." in page
    assert "raises it to $2.00" in page
    assert 'value="always"' not in page
    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.APPROVED


def test_a_member_can_only_end_what_an_owner_must_raise(
    run: Run, alice: User, owner: User, sign_in: SignIn
) -> None:
    approval = used_up(run, owner, user=alice)
    path = reverse("approval_decide", args=[approval.pk])
    client = sign_in(alice)

    page = client.get("/approvals/").content.decode()
    refused = client.post(path, {"decision": "approve"})

    assert "Only an owner of this site can raise this budget." in page
    assert 'value="approve"' not in page
    assert refused.status_code == 403
    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.PENDING


def test_an_owner_raises_it_from_the_inbox_without_seeing_the_session(
    run: Run, alice: User, owner: User, sign_in: SignIn
) -> None:
    approval = used_up(run, owner, user=alice)
    client = sign_in(owner)

    page = client.get("/approvals/").content.decode()
    done = client.post(
        reverse("approval_decide", args=[approval.pk]), {"decision": "approve"}
    )

    assert f"{run.session.name}, of alice" in page
    assert f"/sessions/{run.session_id}/" not in page
    assert client.get(f"/sessions/{run.session_id}/").status_code == 404
    assert (done.status_code, done["Location"]) == (302, "/approvals/")
    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.APPROVED


def test_limits_of_a_session_are_among_its_settings(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    path = reverse("session_settings", args=[session.pk])
    kept = {
        "mode": session.mode,
        "security_mode": session.security_mode,
        "network": session.network,
        "effort": session.effort,
    }

    client.post(
        path,
        {
            **kept,
            "max_steps": "9",
            "max_budget_usd_micros": "2.50",
            "run_budget_usd_micros": "0.75",
        },
    )

    session.refresh_from_db()
    assert (
        session.max_steps,
        session.max_budget_usd_micros,
        session.run_budget_usd_micros,
    ) == (9, 2_500_000, 750_000)
    page = client.get(f"/sessions/{session.pk}/").content.decode()
    assert 'value="2.50"' in page
    refused = client.post(path, {**kept, "max_steps": "201"})
    assert refused.status_code == 422


def test_new_agents_start_with_the_preferred_budget_of_a_turn(
    alice: User, sign_in: SignIn
) -> None:
    preferences = preferences_of(alice)
    preferences.run_budget_usd_micros = 400_000
    preferences.save()

    page = sign_in(alice).get("/sessions/new/").content.decode()

    assert 'value="0.40"' in page
    assert factories.make_session(alice).run_budget_usd_micros == 400_000
