"""Who an agent may ask, and how deep."""

from __future__ import annotations

import pytest

from agents.domain import invocation
from agents.errors import InvalidInputError
from agents.models import User
from tests import factories

pytestmark = pytest.mark.django_db


def test_what_waits_for_the_asking_agent_can_not_be_asked(alice: User) -> None:
    grandparent, parent, other = (factories.make_session(alice) for _ in range(3))
    parent.parent_session, parent.depth = grandparent, 1
    parent.save()

    for source in (parent, grandparent):
        with pytest.raises(InvalidInputError, match="waits for you"):
            invocation.invoke_agent(parent.pk, source.pk, "Hello")
    parent.depth = 3
    parent.save()
    with pytest.raises(InvalidInputError, match="3 levels"):
        invocation.invoke_agent(parent.pk, other.pk, "Hello")


def test_other_peoples_sessions_can_not_be_asked(alice: User, bob: User) -> None:
    parent = factories.make_session(alice)
    foreign = factories.make_session(bob)

    with pytest.raises(InvalidInputError, match="There is no session"):
        invocation.invoke_agent(parent.pk, foreign.pk, "Hello")
