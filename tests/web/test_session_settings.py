"""The security mode among a session's settings, under the ceilings of people."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from agents.models import Share, User
from tests import factories

SignIn = Callable[[User], Client]


def test_a_lowered_ceiling_is_shown_and_changes_no_mode_by_itself(
    alice: User, sign_in: SignIn
) -> None:
    session = factories.make_session(alice, security_mode="full")
    User.objects.update(security_ceiling="ask")
    client, path = sign_in(alice), f"/sessions/{session.pk}/"

    page = client.get(path).text
    assert "full, limited to ask" in page
    assert '<option value="full" selected>Full, limited to ask</option>' in page
    kept = {"mode": "agent", "network": "none", "effort": "low"}

    assert (
        client.post(f"{path}settings/", {**kept, "security_mode": "full"}).status_code
        == 302
    )
    session.refresh_from_db()
    assert (session.security_mode, session.effort) == ("full", "low")

    client.post(f"{path}settings/", {**kept, "security_mode": "ask"})
    again = client.post(f"{path}settings/", {**kept, "security_mode": "full"})
    session.refresh_from_db()
    assert (again.status_code, session.security_mode) == (422, "ask")


def test_who_helps_out_does_not_go_past_the_owners_ceiling(
    alice: User, bob: User, sign_in: SignIn
) -> None:
    session = factories.make_session(alice)
    Share.objects.create(session=session, user=bob, right="operate")
    User.objects.filter(pk=alice.pk).update(security_ceiling="ask")
    wanted = {"mode": "agent", "network": "none", "effort": "low"}

    response = sign_in(bob).post(
        f"/sessions/{session.pk}/settings/", {**wanted, "security_mode": "full"}
    )

    session.refresh_from_db()
    assert (response.status_code, session.security_mode) == (422, "ask")
