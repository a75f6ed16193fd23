"""Tokens open the API, cookies don't, and each does what its scopes say."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.models import AgentSession, ApprovalRequest, Run, User
from tests import factories
from tests.people import browser

from .conftest import MakeProgram, Program

pytestmark = pytest.mark.django_db


@pytest.fixture
def approval(run: Run) -> ApprovalRequest:
    return factories.ask_approval(run)


def code_of(answer: Any) -> str:
    code: str = answer.json()["error"]["code"]
    return code


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer  ", "Basic osw_x", "Bearer osw_wrong"]
)
def test_without_a_token_that_works_nothing_is_told(
    alice: User, header: str | None
) -> None:
    headers = {} if header is None else {"Authorization": header}

    answer = Client().get("/api/me/", headers=headers)

    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert code_of(answer) == "unauthorized"


def test_a_cookie_is_no_token_and_does_not_count_beside_one(
    program: MakeProgram, alice: User, bob: User
) -> None:
    cookies = browser(bob)
    token = program(alice).token

    alone = cookies.get("/api/me/")
    beside = cookies.get("/api/me/", headers={"Authorization": f"Bearer {token}"})

    assert alone.status_code == 401
    assert beside.json()["username"] == "alice"
    assert not beside.cookies


def test_a_token_needs_no_csrf_token(program: MakeProgram, alice: User) -> None:
    strict = Client(enforce_csrf_checks=True)

    answer = strict.post(
        "/api/sessions/",
        {"task": "Hello"},
        content_type="application/json",
        headers={"Authorization": f"Bearer {program(alice).token}"},
    )

    assert answer.status_code == 201


def test_each_scope_opens_its_own_doors(
    program: MakeProgram, alice: User, session: AgentSession, approval: ApprovalRequest
) -> None:
    doors = {
        "read": lambda each: each.get(f"/sessions/{session.pk}/"),
        "write": lambda each: each.post(
            f"/sessions/{session.pk}/messages/", {"text": "And?"}
        ),
        "decide": lambda each: each.post(
            f"/approvals/{approval.pk}/decide/", {"decision": "deny"}
        ),
    }

    for scope in doors:
        answers = {name: door(program(alice, scope)) for name, door in doors.items()}
        opened = {name for name, each in answers.items() if each.status_code < 400}
        refused = [each for name, each in answers.items() if name != scope]
        assert opened == {scope}
        assert {each.status_code for each in refused} == {403}
        assert {code_of(each) for each in refused} == {"missing_scope"}


def test_too_many_wrong_tokens_are_slowed_down_and_a_right_one_is_not(
    program: MakeProgram, alice: User, override_conf: Any
) -> None:
    override_conf(login_attempts=2)
    wrong = Program("osw_wrong")

    answers = [wrong.get("/me/") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [401, 401, 429]
    assert answers[-1]["Retry-After"] == "300"
    assert program(alice).get("/me/").status_code == 200


def test_a_person_who_may_not_sign_in_has_no_token_either(
    program: MakeProgram, alice: User
) -> None:
    mine = program(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)

    assert mine.get("/me/").status_code == 401
