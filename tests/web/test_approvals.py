"""The inbox, decisions and answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.domain import approvals
from agents.domain.approvals import Decision, decide_approval
from agents.models import ApprovalRequest, PermissionRule, Run, Share, User
from agents.models.sessions import ShareRight
from agents.models.users import Role
from tests import factories
from tests.dom import Node, parse

HTMX = {"HX-Request": "true"}
SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


def page_of(response: Any) -> Node:
    return parse(response.content.decode())


def decide(client: Client, approval: ApprovalRequest, choice: str, **data: Any) -> Any:
    headers = data.pop("headers", HTMX)
    path = f"/approvals/{approval.pk}/decide/"
    return client.post(path, {"decision": choice, **data}, headers=headers)


def answer(client: Client, approval: ApprovalRequest, **data: Any) -> Any:
    headers = data.pop("headers", HTMX)
    fields = {name.replace("_", "-"): value for name, value in data.items()}
    return client.post(f"/approvals/{approval.pk}/answer/", fields, headers=headers)


@pytest.fixture
def approval(run: Run) -> ApprovalRequest:
    return factories.ask_approval(run)


@pytest.fixture
def question(run: Run) -> ApprovalRequest:
    return factories.ask_question(run)


def test_the_card_shows_what_would_run_and_why(
    approval: ApprovalRequest, alice: User, sign_in: SignIn
) -> None:
    page = page_of(sign_in(alice).get(f"/sessions/{approval.session_id}/"))

    card = page.find(f"approval-{approval.pk}")
    assert card.attributes["data-state"] == "pending"
    assert "/srv/hello.txt" in card.text
    assert "Hello" in card.text
    assert "Writing asks in this security mode." in card.words
    buttons = [node.words for node in card.find_all("button")]
    wanted = {"Approve", "Deny", "Deny and stop", "Approve for this session"}
    assert wanted | {"Always allow", "Approve edited input"} <= set(buttons)
    assert card.find_all("input", name="csrfmiddlewaretoken")
    waiting = page.find(f"session-{approval.session_id}-waiting")
    [link] = waiting.find_all("a")
    assert link.attributes["href"] == f"#approval-{approval.pk}"
    assert "1 approval waits for you" in waiting.words


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("approve", {"status": "approved", "scope": "once", "stops_run": False}),
        ("deny", {"status": "denied", "scope": "once", "stops_run": False}),
        ("deny_stop", {"status": "denied", "scope": "once", "stops_run": True}),
        ("session", {"status": "approved", "scope": "session", "stops_run": False}),
        ("always", {"status": "approved", "scope": "always", "stops_run": False}),
    ],
)
def test_each_button_decides(
    approval: ApprovalRequest,
    alice: User,
    sign_in: SignIn,
    choice: str,
    expected: dict[str, Any],
) -> None:
    response = decide(sign_in(alice), approval, choice, message="Because.")

    approval.refresh_from_db()
    assert {name: getattr(approval, name) for name in expected} == expected
    assert approval.message == "Because."
    assert approval.decided_by == alice
    card = page_of(response).find(f"approval-{approval.pk}")
    assert card.attributes["data-state"] == expected["status"]
    assert "by alice" in card.words
    assert card.find_all("form") == []
    assert PermissionRule.objects.count() == (expected["scope"] != "once")


def test_it_works_without_javascript(
    approval: ApprovalRequest, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)

    response = decide(client, approval, "approve", headers={})

    assert response["Location"] == f"/sessions/{approval.session_id}/"
    shown = page_of(client.get(response["Location"]))
    assert "approved by alice" in shown.find("toasts").words


def test_edited_input_is_what_runs(
    approval: ApprovalRequest, alice: User, sign_in: SignIn
) -> None:
    edited = {"file_path": "/srv/hello.txt", "content": "Goodbye\n"}

    decide(sign_in(alice), approval, "edit", updated_input=json.dumps(edited))

    approval.refresh_from_db()
    assert approval.status == "approved"
    assert approval.updated_input == edited


@pytest.mark.parametrize("headers", [HTMX, {}])
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"content": ', "This is not valid JSON"),
        ("[1, 2]", "must be a JSON object"),
        ('{"content": "x"}', "file_path"),
        ('{"file_path": 7, "content": "x"}', "file_path"),
        ("[" * 100_000, "This is not valid JSON"),
    ],
    ids=["broken", "list", "missing", "wrong-type", "deep"],
)
def test_bad_input_is_refused_and_kept(
    approval: ApprovalRequest,
    alice: User,
    sign_in: SignIn,
    text: str,
    complaint: str,
    headers: dict[str, str],
) -> None:
    response = decide(
        sign_in(alice), approval, "edit", updated_input=text, headers=headers
    )

    card = page_of(response).find(f"approval-{approval.pk}")
    assert response.status_code == 422
    assert complaint in card.words
    assert card.find_all("textarea", name="updated_input")[0].text == text
    approval.refresh_from_db()
    assert approval.status == "pending"


@pytest.mark.parametrize("headers", [HTMX, {}])
def test_the_second_to_decide_is_told_who_was_first(
    approval: ApprovalRequest,
    alice: User,
    bob: User,
    sign_in: SignIn,
    headers: dict[str, str],
) -> None:
    Share.objects.create(session=approval.session, user=bob, right=ShareRight.OPERATE)
    decide(sign_in(bob), approval, "deny")

    response = decide(sign_in(alice), approval, "approve", headers=headers)

    card = page_of(response).find(f"approval-{approval.pk}")
    assert response.status_code == 409
    assert card.attributes["data-state"] == "denied"
    assert "bob denied this request already." in card.words
    approval.refresh_from_db()
    assert (approval.status, approval.decided_by) == ("denied", bob)


def test_an_expired_request_can_not_be_approved(
    approval: ApprovalRequest, alice: User, sign_in: SignIn
) -> None:
    past = timezone.now() - timedelta(seconds=1)
    ApprovalRequest.objects.filter(pk=approval.pk).update(expires_at=past)

    response = decide(sign_in(alice), approval, "approve")

    assert response.status_code == 409
    card = page_of(response).find(f"approval-{approval.pk}")
    assert card.attributes["data-state"] == "expired"


def test_a_question_is_a_form(
    question: ApprovalRequest, alice: User, sign_in: SignIn
) -> None:
    page = page_of(sign_in(alice).get(f"/sessions/{question.session_id}/"))

    card = page.find(f"approval-{question.pk}")
    kinds = [
        (node.attributes["type"], node.attributes["value"])
        for node in card.find_all("input")
        if node.attributes["type"] in ("radio", "checkbox")
    ]
    assert kinds == [
        *(("radio", "Red"), ("radio", "Blue")),
        *(("checkbox", "Apple"), ("checkbox", "Pear")),
    ]
    assert "Answer" in [node.words for node in card.find_all("button")]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"answer_0": "Blue", "answer_1": ["Apple", "Pear"]}, "Blue|Apple, Pear"),
        ({"answer_0": "Blue", "other_0": "Mauve", "answer_1": "Pear"}, "Mauve|Pear"),
        ({"answer_0": "Red", "answer_1": "Pear", "other_1": "Fig"}, "Red|Pear, Fig"),
    ],
)
def test_answers_travel_as_input(
    question: ApprovalRequest,
    alice: User,
    sign_in: SignIn,
    fields: dict[str, Any],
    expected: str,
) -> None:
    response = answer(sign_in(alice), question, **fields)

    names = ["Which colour?", "Which fruits?"]
    question.refresh_from_db()
    assert response.status_code == 200
    assert question.status == "approved"
    assert question.updated_input == {
        **factories.QUESTION,
        "answers": dict(zip(names, expected.split("|"), strict=True)),
    }


@pytest.mark.parametrize("headers", [HTMX, {}])
def test_half_an_answer_is_kept_and_refused(
    question: ApprovalRequest, alice: User, sign_in: SignIn, headers: dict[str, str]
) -> None:
    response = answer(
        sign_in(alice), question, answer_0="Blue", other_0="or so", headers=headers
    )

    card = page_of(response).find(f"approval-{question.pk}")
    assert response.status_code == 422
    assert "Answer every question." in card.words
    [blue] = card.find_all("input", value="Blue")
    assert "checked" in blue.attributes
    assert card.find_all("input", value="or so")
    question.refresh_from_db()
    assert question.status == "pending"


def test_an_invented_choice_is_refused(
    question: ApprovalRequest, alice: User, sign_in: SignIn
) -> None:
    response = answer(sign_in(alice), question, answer_0="Green", answer_1="Pear")

    assert response.status_code == 422


def test_only_questions_are_answered(
    approval: ApprovalRequest, alice: User, sign_in: SignIn
) -> None:
    assert answer(sign_in(alice), approval, answer_0="Red").status_code == 404


@pytest.mark.parametrize(
    "payload", [{}, {"questions": "all"}, {"questions": [7, {"options": "x"}]}]
)
def test_a_malformed_question_still_shows_a_card(
    run: Run, alice: User, sign_in: SignIn, payload: dict[str, Any]
) -> None:
    approval = factories.ask_approval(run, "toolu_q", "AskUserQuestion", payload)

    page = page_of(sign_in(alice).get(f"/sessions/{run.session_id}/"))

    assert page.find(f"approval-{approval.pk}").find_all("button")


def test_a_plan_is_read_and_rejected_with_a_reason(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    plan = {"plan": "# Picnic\n\n1. Buy bread"}
    approval = factories.ask_approval(run, "toolu_p", "ExitPlanMode", plan)
    client = sign_in(alice)

    card = page_of(client.get("/approvals/")).find(f"approval-{approval.pk}")
    assert [node.text for node in card.find_all("h1")] == ["Picnic"]
    names = [node.words for node in card.find_all("button")]
    assert names[-2:] == ["Approve plan", "Reject plan"]
    decide(client, approval, "deny", message="No bread.")

    approval.refresh_from_db()
    assert (approval.status, approval.message) == ("denied", "No bread.")


def test_the_inbox_lists_what_the_person_may_decide(
    approval: ApprovalRequest, alice: User, bob: User, charlie: User, sign_in: SignIn
) -> None:
    Share.objects.create(session=approval.session, user=bob, right=ShareRight.VIEW)

    inboxes = {
        user.username: page_of(sign_in(user).get("/approvals/"))
        for user in (alice, bob, charlie)
    }

    card = f"approval-{approval.pk}"
    shows = {name: page.has(card) for name, page in inboxes.items()}
    assert shows == {"alice": True, "bob": False, "charlie": False}
    assert approval.session.name in inboxes["alice"].find(card).words
    assert "Nothing waits for you" in inboxes["bob"].text


def test_the_inbox_takes_the_same_queries_for_one_and_for_three(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    factories.ask_approval(run, "toolu_1")
    client.get("/approvals/")
    counts = []
    for name in ("toolu_2", "toolu_3"):
        with CaptureQueriesContext(connection) as captured:
            client.get("/approvals/")
        counts.append(len(captured))
        factories.ask_approval(run, name)

    with CaptureQueriesContext(connection) as captured:
        page = page_of(client.get("/approvals/"))
    assert len(page.find("inbox-items").find_all("section")) == 3
    assert {len(captured), *counts} == {len(captured)}


def test_strangers_find_no_approval(
    approval: ApprovalRequest, question: ApprovalRequest, charlie: User, sign_in: SignIn
) -> None:
    client = sign_in(charlie)

    assert decide(client, approval, "approve").status_code == 404
    assert answer(client, question, answer_0="Red").status_code == 404
    assert approvals.pending_count(charlie) == 0


def test_those_who_may_look_can_not_decide(
    approval: ApprovalRequest, bob: User, sign_in: SignIn
) -> None:
    Share.objects.create(session=approval.session, user=bob, right=ShareRight.VIEW)
    client = sign_in(bob)

    card = page_of(client.get(f"/sessions/{approval.session_id}/")).find(
        f"approval-{approval.pk}"
    )
    assert card.find_all("form") == []
    assert decide(client, approval, "approve").status_code == 403


def test_viewers_never_decide(approval: ApprovalRequest, sign_in: SignIn) -> None:
    viewer = factories.make_user("vera", role=Role.VIEWER)
    Share.objects.create(
        session=approval.session, user=viewer, right=ShareRight.OPERATE
    )

    assert decide(sign_in(viewer), approval, "approve").status_code == 403


def test_a_decided_card_says_what_was_changed(
    approval: ApprovalRequest, alice: User, sign_in: SignIn
) -> None:
    edited = {"file_path": "/srv/hello.txt", "content": "Changed words\n"}
    decide_approval(approval, alice, Decision(is_approved=True, updated_input=edited))

    page = page_of(sign_in(alice).get(f"/sessions/{approval.session_id}/"))

    card = page.find(f"approval-{approval.pk}")
    assert "The input was edited" in card.words
    assert "Changed words" in card.text
