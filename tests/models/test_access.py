"""Who may see and do what; every page and socket starts from these QuerySets."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from agents.models import (
    AgentSession,
    ApprovalRequest,
    Message,
    MessageBranch,
    Mode,
    PermissionRule,
    Provider,
    Run,
    Share,
    User,
)
from tests import factories

RIGHTS = ["owner", "operate", "view", "none"]
ROLES = ["owner", "member", "viewer"]


@pytest.fixture
def asked(run: Run) -> ApprovalRequest:
    return factories.ask_approval(run)


def person_with(role: str, right: str, session: AgentSession) -> User:
    user = factories.make_user("somebody", role=role)
    if right == "owner":
        AgentSession.objects.update(owner=user)
    elif right != "none":
        Share.objects.create(session=session, user=user, right=right)
    return user


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("right", RIGHTS)
def test_who_sees_and_who_operates(
    asked: ApprovalRequest, role: str, right: str
) -> None:
    user = person_with(role, right, asked.session)

    may_see = right != "none"
    may_operate = right in ("owner", "operate") and role != "viewer"
    for model in (AgentSession, MessageBranch, Message, Run, ApprovalRequest):
        visible = model.objects.visible_to(user)
        assert visible.exists() is may_see
    assert AgentSession.objects.operable_by(user).exists() is may_operate
    assert ApprovalRequest.objects.answerable_by(user).exists() is may_operate


def test_an_owners_role_opens_no_foreign_session(session: AgentSession) -> None:
    site_owner = factories.make_user("olga", role="owner", is_superuser=True)

    assert not AgentSession.objects.visible_to(site_owner).exists()


def test_several_shares_give_no_session_twice(
    session: AgentSession, alice: User, bob: User, charlie: User
) -> None:
    second = factories.make_session(alice)
    for shared in (session, second):
        Share.objects.create(session=shared, user=bob, right="operate")
        Share.objects.create(session=shared, user=charlie, right="view")
    Share.objects.create(session=session, user=alice, right="view")

    for user in (alice, bob, charlie):
        seen = list(AgentSession.objects.visible_to(user))
        assert len(seen) == len(set(seen)) == 2
    assert AgentSession.objects.operable_by(alice).count() == 2
    assert AgentSession.objects.operable_by(bob).count() == 2


def test_a_share_ends_with_its_row(session: AgentSession, bob: User) -> None:
    share = Share.objects.create(session=session, user=bob, right="operate")
    assert AgentSession.objects.operable_by(bob).exists()

    share.delete()

    assert not AgentSession.objects.visible_to(bob).exists()


def test_a_person_has_one_share_of_a_session(session: AgentSession, bob: User) -> None:
    Share.objects.create(session=session, user=bob, right="view")

    with pytest.raises(IntegrityError), transaction.atomic():
        Share.objects.create(session=session, user=bob, right="operate")


@pytest.mark.parametrize("model", [Mode, Provider])
def test_own_things_and_the_sites_are_visible(
    alice: User, bob: User, model: Any
) -> None:
    extra = {"slug": "m"} if model is Mode else {"kind": "gateway"}
    own = model.objects.create(owner=alice, name="Own", **extra)
    site = model.objects.create(owner=None, name="Site", **extra)

    assert {own, site} <= set(model.objects.visible_to(alice))
    assert own not in model.objects.visible_to(bob)
    assert site in model.objects.visible_to(bob)


def test_the_sites_providers_are_the_owners_to_edit(alice: User, bob: User) -> None:
    olga = factories.make_user("olga", role="owner")
    site = Provider.objects.create(owner=None, name="Site", kind="gateway")
    hers = Provider.objects.create(owner=alice, name="Hers", kind="gateway")

    assert list(Provider.objects.editable_by(olga)) == [site]
    assert list(Provider.objects.editable_by(alice)) == [hers]
    assert not Provider.objects.editable_by(bob).exists()


def test_rules_of_the_site_are_everybodys_to_see(alice: User, bob: User) -> None:
    rule = PermissionRule.objects.create(
        owner=alice, scope="site", tool="Bash", effect="deny"
    )
    PermissionRule.objects.create(owner=alice, scope="user", tool="*", effect="ask")

    assert list(PermissionRule.objects.visible_to(bob)) == [rule]
    assert PermissionRule.objects.visible_to(alice).count() == 2
