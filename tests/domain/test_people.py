"""What owners change about accounts."""

from __future__ import annotations

import pytest

from agents.domain import people
from agents.domain.accounts import create_invite, find_invite, preferences_of
from agents.errors import InvalidInputError
from agents.models import AuditEntry, Invite, Run, User
from agents.models.users import Role
from tests import factories
from tests.people import browser, person
from tests.threads import at_once


@pytest.fixture
def olga(db):
    return person("olga", Role.OWNER)


def test_one_of_two_owners_may_step_down_but_not_both(olga):
    second = person("petra", Role.OWNER)

    olga.role = Role.MEMBER
    people.save_person(olga, olga)
    second.role = Role.VIEWER
    with pytest.raises(InvalidInputError) as refused:
        people.save_person(second, second)

    assert refused.value.field == "role"
    assert list(User.objects.filter(role=Role.OWNER)) == [second]


def test_an_owner_who_is_off_does_not_count(olga):
    person("petra", Role.OWNER, is_active=False)

    olga.is_active = False

    assert people.would_leave_no_owner(olga)


def test_switching_somebody_off_stops_their_agents_only(olga):
    anna = person("anna")
    hers, mine = factories.make_session(anna), factories.make_session(olga)
    factories.start_turn(hers)

    anna.is_active = False
    people.save_person(anna, olga)

    assert Run.objects.get(session=hers).stop_requested_at is not None
    assert Run.objects.get(session=mine).stop_requested_at is None


def test_signing_out_leaves_the_others_alone(olga):
    anna = person("anna")
    hers, mine = browser(anna), browser(olga)

    people.sign_out_everywhere(anna)

    assert hers.get("/settings/password/").status_code == 302
    assert mine.get("/settings/password/").status_code == 200


def test_preferences_stay_below_the_ceiling(olga):
    olga.security_ceiling = "sandbox"
    preferences = preferences_of(olga)
    preferences.user = olga
    preferences.default_security_mode = "full"

    with pytest.raises(InvalidInputError):
        people.save_preferences(preferences)


def save_as(name: str, role: Role) -> User:
    changed = User.objects.get(username=name)
    changed.role = role
    return people.save_person(changed, changed)


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_step_down_at_once_leave_one():
    for name in ("olga", "petra"):
        person(name, Role.OWNER)

    results = at_once(
        lambda: save_as("olga", Role.MEMBER), lambda: save_as("petra", Role.MEMBER)
    )

    assert {type(result) for result in results} == {User, InvalidInputError}
    assert User.objects.filter(role=Role.OWNER).count() == 1


def test_a_new_person_gets_preferences_and_an_entry(olga):
    anna = people.save_person(User(username="anna", role=Role.VIEWER), olga)

    assert preferences_of(anna).pk
    entry = AuditEntry.objects.get(action="account.created")
    assert (entry.actor, entry.target_id) == (olga, str(anna.pk))


def test_a_changed_password_is_audited_without_it(olga):
    people.change_password(olga, "another long secret", actor=olga)

    olga.refresh_from_db()
    assert olga.check_password("another long secret")
    entry = AuditEntry.objects.get(action="password.changed")
    assert "another long secret" not in str(vars(entry))


def test_a_revoked_invite_is_gone(olga):
    token = create_invite(olga, role=Role.MEMBER)

    people.revoke_invite(Invite.objects.get(), olga)

    assert find_invite(token, is_setup=False) is None
    assert AuditEntry.objects.filter(action="invite.revoked").count() == 1
