"""What owners change about accounts."""

from __future__ import annotations

import pytest

from agents.domain import people
from agents.domain.accounts import preferences_of
from agents.errors import InvalidInputError
from agents.models import Run, User
from agents.models.users import Role
from tests import factories
from tests.people import browser, person


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
