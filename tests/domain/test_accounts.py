from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError
from django.utils import timezone

from agents.domain import accounts, audit
from agents.errors import InvalidInputError, NotAllowedError
from agents.models import AuditEntry, Invite, Preferences, User
from agents.models.users import Role
from tests import factories
from tests.people import person
from tests.threads import at_once

PASSWORD = "a long enough secret"


def accept(token: str, username: str, *, is_setup: bool = False) -> User:
    invite = accounts.find_invite(token, is_setup=is_setup)
    assert invite is not None
    return accounts.accept_invite(invite, username=username, password=PASSWORD)


@pytest.fixture
def olga(db: None) -> User:
    return person("olga", Role.OWNER)


# First run


def test_the_setup_link_makes_an_owner_who_may_use_the_admin(db: None) -> None:
    token = accounts.issue_setup_token()
    assert token is not None

    owner = accept(token, "olga", is_setup=True)

    assert (owner.role, owner.is_staff, owner.is_superuser) == ("owner", True, True)
    assert owner.check_password(PASSWORD)
    assert Preferences.objects.get().user == owner
    assert accounts.issue_setup_token() is None
    assert accounts.find_invite(token, is_setup=True) is None


def test_a_new_setup_link_ends_the_older_one(db: None) -> None:
    first, second = accounts.issue_setup_token(), accounts.issue_setup_token()
    assert first is not None
    assert second is not None

    assert accounts.find_invite(first, is_setup=True) is None
    assert accounts.find_invite(second, is_setup=True) is not None
    assert Invite.objects.count() == 1


def test_only_a_hash_of_the_link_is_stored(db: None) -> None:
    token = accounts.issue_setup_token()

    assert token is not None
    assert token not in str(list(Invite.objects.values()))


def test_the_setup_link_ends_when_somebody_else_was_quicker(db: None) -> None:
    token = accounts.issue_setup_token()
    assert token is not None
    invite = accounts.find_invite(token, is_setup=True)
    assert invite is not None
    person("from-the-command-line", Role.OWNER)

    with pytest.raises(NotAllowedError):
        accounts.accept_invite(invite, username="eve", password=PASSWORD)

    assert not User.objects.filter(username="eve").exists()


@pytest.mark.django_db(transaction=True)
def test_the_setup_link_is_used_once_even_at_once() -> None:
    token = accounts.issue_setup_token()
    assert token is not None
    invite = accounts.find_invite(token, is_setup=True)
    assert invite is not None

    def make(name: str) -> User:
        return accounts.accept_invite(invite, username=name, password=PASSWORD)

    results = at_once(lambda: make("olga"), lambda: make("petra"))

    assert {type(result) for result in results} == {User, NotAllowedError}
    assert User.objects.count() == 1


# Invites


@pytest.mark.parametrize("role", ["member", "viewer", "owner"])
def test_an_invite_makes_an_account_of_its_role_once(olga: User, role: str) -> None:
    token = accounts.create_invite(olga, role=role)

    user = accept(token, "nora")

    assert user.role == role
    assert user.is_staff == user.is_superuser == (role == "owner")
    assert Invite.objects.get().accepted_by == user
    assert accounts.find_invite(token, is_setup=False) is None
    entry = AuditEntry.objects.get(action="account.created")
    assert (entry.actor, entry.data) == (user, {"role": role})


@pytest.mark.parametrize("role", ["member", "viewer"])
def test_only_owners_invite(db: None, role: str) -> None:
    with pytest.raises(NotAllowedError):
        accounts.create_invite(person("mia", Role(role)), role="member")


def test_an_invite_ends_after_its_days(olga: User) -> None:
    token = accounts.create_invite(olga, role="member")
    Invite.objects.update(expires_at=timezone.now())

    assert accounts.find_invite(token, is_setup=False) is None


@pytest.mark.parametrize("change", [{"role": "member"}, {"is_active": False}])
def test_an_invite_ends_with_its_senders_rights(olga: User, change: Any) -> None:
    token = accounts.create_invite(olga, role="owner")
    invite = Invite.objects.get()
    User.objects.update(**change)

    assert accounts.find_invite(token, is_setup=False) is None
    with pytest.raises(NotAllowedError):
        accounts.accept_invite(invite, username="eve", password=PASSWORD)


@pytest.mark.parametrize("username", ["OLGA", "оlga", "ol ga", ""])
def test_no_account_looks_like_another(olga: User, username: str) -> None:
    token = accounts.create_invite(olga, role="member")

    with pytest.raises(InvalidInputError) as refusal:
        accept(token, username)

    assert refusal.value.field == "username"
    assert User.objects.count() == 1


def test_the_database_too_knows_a_name_in_any_case(olga: User) -> None:
    with pytest.raises(IntegrityError):
        person("Olga")


def test_a_name_that_is_taken_leaves_the_link_open(olga: User) -> None:
    token = accounts.create_invite(olga, role="member")

    with pytest.raises(InvalidInputError) as refusal:
        accept(token, "olga")

    assert refusal.value.field == "username"
    assert accept(token, "nora").username == "nora"


@pytest.mark.django_db(transaction=True)
def test_an_invite_is_used_once_even_at_once() -> None:
    olga = person("olga", Role.OWNER)
    accounts.create_invite(olga, role="member")
    invite = Invite.objects.get()

    results = at_once(
        *[
            lambda name=name: accounts.accept_invite(
                invite, username=name, password=PASSWORD
            )
            for name in ("nora", "mia", "eve")
        ]
    )

    assert sum(isinstance(result, User) for result in results) == 1
    assert User.objects.exclude(pk=olga.pk).count() == 1


# Limits on signing in


def fail(username: str, address: str, times: int) -> None:
    for _ in range(times):
        accounts.record_failed_sign_in(username, address)


def test_a_name_or_an_address_that_failed_too_often_is_blocked(
    db: None, override_conf: Any
) -> None:
    override_conf(login_attempts=3)
    fail("Alice", "192.0.2.1", 2)
    assert not accounts.sign_in_is_blocked("alice", "192.0.2.1")

    fail("ALICE", "192.0.2.1", 1)

    assert accounts.sign_in_is_blocked("alice", "192.0.2.9")
    assert accounts.sign_in_is_blocked("bob", "192.0.2.1")
    assert not accounts.sign_in_is_blocked("bob", "192.0.2.9")


def test_old_failures_are_forgotten(db: None, override_conf: Any) -> None:
    override_conf(login_attempts=1, login_window_seconds=300)
    fail("alice", "192.0.2.1", 1)
    AuditEntry.objects.update(created_at=timezone.now() - timedelta(seconds=301))

    assert not accounts.sign_in_is_blocked("alice", "192.0.2.1")


def test_an_unknown_address_blocks_nobody_else(db: None, override_conf: Any) -> None:
    override_conf(login_attempts=1)
    fail("alice", "", 1)

    assert not accounts.sign_in_is_blocked("bob", "")
    assert accounts.sign_in_is_blocked("alice", "")


@pytest.mark.parametrize("name", ["n\x00\ud800" + "x" * 500, "İ" * 200])
def test_odd_names_and_addresses_are_stored_and_found_again(
    db: None, override_conf: Any, name: str
) -> None:
    override_conf(login_attempts=1)
    fail(name, "fe80::1%" + "z" * 80, 1)

    assert accounts.sign_in_is_blocked(name, "")
    assert accounts.sign_in_is_blocked("bob", "fe80::1%" + "z" * 80)


def test_signing_in_is_audited(alice: User) -> None:
    accounts.record_sign_in(alice, "192.0.2.1")

    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor) == ("login.succeeded", alice)
    assert (entry.target_type, entry.target_id) == ("user", str(alice.pk))
    assert entry.address == "192.0.2.1"


# Audit and preferences


def test_audit_data_is_cleaned(alice: User) -> None:
    audit.record("thing.done", actor=None, name="a\x00\ud800")

    entry = AuditEntry.objects.get()
    assert entry.data == {"name": "a\ufffd\ufffd"}
    assert (entry.actor, entry.target_type, entry.target_id) == (None, "", "")


def test_no_audit_entry_holds_a_token_or_a_password(olga: User) -> None:
    token = accounts.create_invite(olga, role="member")
    accept(token, "nora")
    fail("nora", "192.0.2.1", 1)

    written = str(list(AuditEntry.objects.values()))
    assert token not in written
    assert accounts._hash(token) not in written
    assert PASSWORD not in written


def test_preferences_are_made_when_first_asked_for(db: None) -> None:
    alice = factories.make_user("alice")

    assert accounts.preferences_of(alice) == accounts.preferences_of(alice)
    assert Preferences.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_preferences_are_made_once_even_at_once() -> None:
    alice = factories.make_user("alice")

    results = at_once(*[lambda: accounts.preferences_of(alice)] * 4)

    assert set(results) == {Preferences.objects.get()}
