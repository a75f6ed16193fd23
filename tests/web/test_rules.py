"""The pages of standing rules: the list, a new one, past calls, and the explainer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.domain.approvals import Decision, decide_approval
from agents.models import ApprovalRequest, PermissionRule, Run, Share, User
from agents.models.approvals import ApprovalScope
from agents.models.users import Role
from tests import factories
from tests.dom import Node, parse

LIST = "/settings/rules/"
NEW, EXPLAIN = f"{LIST}new/", f"{LIST}explain/"
HTMX = {"HX-Request": "true"}
STATUS = {"command": "git status"}
SignIn = Callable[[User], Client]
ALWAYS = Decision(is_approved=True, scope=ApprovalScope.ALWAYS)
FORM = {"effect": "deny", "tool": "Bash", "matcher": "git push:*", "scope": "user"}


@pytest.fixture
def olivia(db: None) -> User:
    return factories.make_user("olivia", role=Role.OWNER)


@pytest.fixture
def asked(run: Run) -> ApprovalRequest:
    return factories.ask_approval(run, "toolu_1", "Bash", STATUS)


@pytest.fixture
def always(asked: ApprovalRequest, alice: User) -> PermissionRule:
    """The rule of a card's "Always allow"."""
    decide_approval(asked, alice, ALWAYS)
    return PermissionRule.objects.get()


def rule(owner: User, **fields: Any) -> PermissionRule:
    defaults = {"scope": "user", "tool": "Bash", "matcher": "ls:*", "effect": "allow"}
    return PermissionRule.objects.create(owner=owner, **{**defaults, **fields})


def page_of(response: Any, status: int = 200) -> Node:
    assert response.status_code == status
    return parse(response.content.decode())


def rows(page: Node) -> list[str]:
    return [row.words for row in page.find_all("tr") if row.id.startswith("rule-")]


def test_a_rule_says_what_it_allows_and_where_it_comes_from(
    always: PermissionRule, alice: User, sign_in: SignIn
) -> None:
    PermissionRule.objects.update(hits=3, last_hit_at=timezone.now())

    page = page_of(sign_in(alice).get(LIST))

    (row,) = rows(page)
    assert row.startswith("Bash(git status:*) Allow All my sessions 3 just now never")
    assert row.endswith("from an approval Revoke")
    call = always.created_from.session.messages.get(tool_use_id="toolu_1")  # type: ignore[union-attr]  # it has one
    (link,) = [node for node in page.find_all("a") if node.words == "from an approval"]
    assert f"message={call.pk}#tool-{call.pk}" in link.attributes["href"]


def test_the_page_names_every_scope(
    run: Run, alice: User, bob: User, sign_in: SignIn
) -> None:
    rule(alice, scope="session", session=run.session)
    rule(alice, scope="mode", mode="ask", expires_at=timezone.now() - timedelta(1))
    rule(bob, scope="session", session=run.session)
    rule(bob, scope="site", effect="deny")
    rule(bob)

    found = rows(page_of(sign_in(alice).get(LIST)))

    assert len(found) == 4
    deny, of_bob, mode, own = found
    assert "Deny Everybody" in deny
    assert not deny.endswith("Revoke")
    assert f"Allow {run.session.name}" in of_bob
    assert of_bob.endswith("by bob Revoke")
    assert "Mode “ask”" in mode
    assert "Ended" in mode
    assert f"Allow {run.session.name}" in own


def test_a_session_that_is_not_shared_any_more_is_not_named(
    run: Run, bob: User, sign_in: SignIn
) -> None:
    rule(bob, scope="session", session=run.session)

    (row,) = rows(page_of(sign_in(bob).get(LIST)))

    assert "A session that you can’t see any more" in row
    assert run.session.name not in row


def test_rules_can_be_filtered(alice: User, sign_in: SignIn) -> None:
    rule(alice, matcher="git status:*")
    denied = rule(alice, tool="Write", matcher="", effect="deny")
    client = sign_in(alice)

    def found(query: str) -> int:
        return len(rows(page_of(client.get(f"{LIST}?{query}"))))

    assert found("") == 2
    assert found("q=GIT") == found("effect=deny") == found(f"rule={denied.pk}") == 1
    assert found("scope=user") == found("rule=nonsense&effect=what") == 2
    assert "No such rule" in client.get(f"{LIST}?q=nothing").text


def test_the_list_takes_the_same_number_of_queries_however_long(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)

    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get(LIST)
        return len(queries)

    def add(number: int) -> None:
        asked = factories.ask_approval(run, f"toolu_{number}", "Bash", STATUS)
        fields = {"session": run.session, "scope": "session", "created_from": asked}
        rule(alice, **fields)

    add(1)
    client.get(LIST)
    one = count()
    add(2)
    add(3)

    assert count() == one


def test_revoking_ends_the_rule(
    always: PermissionRule, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)

    response = client.post(f"{LIST}{always.pk}/revoke/", follow=True)

    assert "The rule Bash(git status:*) is revoked." in response.text
    assert not PermissionRule.objects.exists()
    assert client.post(f"{LIST}{always.pk}/revoke/").status_code == 404


def test_members_do_not_revoke_what_owners_made_for_everybody(
    olivia: User, alice: User, bob: User, sign_in: SignIn
) -> None:
    for_all, of_bob = rule(olivia, scope="site"), rule(bob)
    client = sign_in(alice)

    assert client.post(f"{LIST}{for_all.pk}/revoke/").status_code == 403
    assert client.post(f"{LIST}{of_bob.pk}/revoke/").status_code == 404
    assert PermissionRule.objects.count() == 2
    assert sign_in(olivia).post(f"{LIST}{for_all.pk}/revoke/").status_code == 302


def test_revoking_takes_a_token(always: PermissionRule, alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)

    assert client.post(f"{LIST}{always.pk}/revoke/").status_code == 403
    assert PermissionRule.objects.exists()


# A new rule


def previewed(client: Client, data: dict[str, Any]) -> dict[str, Any]:
    """Press "Preview" and return what "Save rule" then sends."""
    page = page_of(client.post(NEW, {**data, "preview": "1"}))
    (hidden,) = [
        node
        for node in page.find_all("input", name="previewed")
        if node.attributes.get("value")
    ]
    return {**data, "previewed": hidden.attributes["value"], "save": "1"}


def test_a_rule_is_seen_with_its_past_calls_before_it_is_saved(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    factories.call_tool(run, "toolu_9", "Bash", {"command": "git push origin"})
    client = sign_in(alice)

    shown = page_of(client.post(NEW, {**FORM, "preview": "1"})).words
    assert "1 past call would have matched Bash(git push:*)" in shown
    assert "git push origin" in shown
    assert not PermissionRule.objects.exists()

    response = client.post(NEW, previewed(client, FORM), follow=True)
    assert "The rule Bash(git push:*) is in force." in response.text
    assert PermissionRule.objects.get().effect == "deny"


def test_what_was_not_previewed_is_not_saved(alice: User, sign_in: SignIn) -> None:
    client = sign_in(alice)
    saving = previewed(client, FORM)

    page = page_of(client.post(NEW, {**saving, "matcher": "git:*"}))

    assert "No past call would have matched Bash(git:*)" in page.words
    assert not PermissionRule.objects.exists()


def test_a_bad_matcher_is_refused_with_a_sentence(alice: User, sign_in: SignIn) -> None:
    response = sign_in(alice).post(NEW, {**FORM, "matcher": "git *", "save": "1"})

    page = page_of(response, 422)
    assert "Write git:* for any arguments." in page.words
    assert page.find("id_matcher").attributes["value"] == "git *"
    assert "Save rule" not in page.words


def test_a_rule_for_a_session_with_an_end(
    run: Run, alice: User, bob: User, sign_in: SignIn
) -> None:
    theirs = factories.make_session(bob)
    client = sign_in(alice)
    scoped = {**FORM, "scope": "session", "session": run.session_id, "expires": "hour"}

    assert client.post(NEW, {**scoped, "session": theirs.pk}).status_code == 422
    client.post(NEW, previewed(client, scoped))

    kept = PermissionRule.objects.get()
    assert kept.session == run.session
    assert kept.expires_at is not None
    assert kept.expires_at > timezone.now()


def test_only_owners_may_choose_everybody(
    olivia: User, alice: User, sign_in: SignIn
) -> None:
    for_all = {**FORM, "scope": "site"}

    assert "Everybody" not in sign_in(alice).get(NEW).text
    assert sign_in(alice).post(NEW, {**for_all, "save": "1"}).status_code == 422
    owner = sign_in(olivia)
    assert "Everybody" in owner.get(NEW).text
    owner.post(NEW, previewed(owner, for_all))
    assert PermissionRule.objects.get().scope == "site"


def test_viewers_have_nothing_to_make_rules_about(db: None, sign_in: SignIn) -> None:
    client = sign_in(factories.make_user("vera", role=Role.VIEWER))

    assert client.get(NEW).status_code == 403
    assert NEW not in client.get(LIST).text


# Past calls on a card


def test_a_card_leads_to_the_past_calls_of_its_rule(
    asked: ApprovalRequest, alice: User, sign_in: SignIn
) -> None:
    factories.call_tool(asked.run, "toolu_2", "Bash", {"command": "git status -s"})
    client = sign_in(alice)
    path = f"/approvals/{asked.pk}/rule/"

    assert f'href="{path}"' in client.get("/approvals/").text
    whole = page_of(client.get(path))
    part = page_of(client.get(path, headers=HTMX))

    past = part.find(f"approval-{asked.pk}-past")
    assert "1 past call would have matched Bash(git status:*)" in past.words
    assert "0 approved by hand, 0 denied by hand" in past.words
    assert past.words == whole.find("past-calls").words
    assert "2 past calls" not in past.words, "the call that asks is not past"
    assert "Always allow" in whole.words


def test_the_inbox_does_not_look_for_past_calls(
    asked: ApprovalRequest, run: Run, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)

    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get("/approvals/")
        return len(queries)

    one = count()
    factories.ask_approval(run, "toolu_2", "Bash", STATUS)

    assert count() == one


def test_strangers_find_no_past_calls(
    asked: ApprovalRequest, bob: User, sign_in: SignIn
) -> None:
    assert sign_in(bob).get(f"/approvals/{asked.pk}/rule/").status_code == 404


# Why?


def trace(page: Node) -> list[str]:
    return [node.words for node in page.find("explanation").find_all("li")]


def test_a_typed_call_is_explained_step_by_step(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    Run.objects.update(jailed=True)
    denying = rule(alice, matcher="rm:*", effect="deny")
    typed = {
        "session": run.session_id,
        "tool": "Bash",
        "tool_input": '{"command": "ls && rm x"}',
    }

    page = page_of(sign_in(alice).post(EXPLAIN, typed))

    steps = trace(page)
    assert steps[0] == "Tool Nothing against it"
    assert steps[4] == (
        "Rules that ask or deny Denied The rule Bash(rm:*) (user) denies this."
        " See the rule"
    )
    assert steps[-1].startswith("Security mode Asks")
    links = {node.attributes.get("href") for node in page.find_all("a")}
    assert f"{LIST}?rule={denying.pk}" in links


def test_planning_is_said_by_a_tick(run: Run, alice: User, sign_in: SignIn) -> None:
    typed = {
        "session": run.session_id,
        "tool": "Write",
        "tool_input": '{"file_path": "a"}',
    }
    client = sign_in(alice)

    assert "The session is planning" not in client.post(EXPLAIN, typed).text
    planning = client.post(EXPLAIN, {**typed, "is_planning": "on"})
    assert "The session is planning" in planning.text


@pytest.mark.parametrize("given", ["{", "[1]", "nonsense"])
def test_broken_json_stays_to_be_mended(
    run: Run, alice: User, sign_in: SignIn, given: str
) -> None:
    typed = {"session": run.session_id, "tool": "Bash", "tool_input": given}

    page = page_of(sign_in(alice).post(EXPLAIN, typed), 422)

    assert page.find("id_tool_input").words == given
    assert not page.has("explanation")


def test_cards_lead_to_their_explanation(
    asked: ApprovalRequest, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    call = asked.session.messages.get(tool_use_id="toolu_1")

    page = client.get(f"/sessions/{asked.session_id}/").text
    ways = [f"{EXPLAIN}?approval={asked.pk}", f"{EXPLAIN}?message={call.pk}"]

    for way in ways:
        assert f'href="{way}">Why?</a>' in page
        explained = page_of(client.get(way))
        assert trace(explained)[-1].startswith("Security mode Asks")
        assert '"command": "git status"' in explained.find("id_tool_input").text


@pytest.mark.parametrize("query", ["message=nonsense", "approval=", "message=1"])
def test_a_broken_address_is_not_there(
    alice: User, sign_in: SignIn, query: str
) -> None:
    assert sign_in(alice).get(f"{EXPLAIN}?{query}").status_code == 404


def test_strangers_calls_and_sessions_are_not_explained(
    asked: ApprovalRequest, alice: User, bob: User, sign_in: SignIn
) -> None:
    call = asked.session.messages.get(tool_use_id="toolu_1")
    client = sign_in(bob)
    typed = {"session": asked.session_id, "tool": "Bash", "tool_input": "{}"}

    assert client.get(f"{EXPLAIN}?message={call.pk}").status_code == 404
    assert client.get(f"{EXPLAIN}?approval={asked.pk}").status_code == 404
    factories.make_session(bob)
    refused = page_of(client.post(EXPLAIN, typed), 422)
    assert not refused.has("explanation")
    Share.objects.create(session=asked.session, user=bob, right="view")
    assert page_of(client.post(EXPLAIN, typed)).has("explanation")


def test_without_a_session_there_is_nothing_to_explain(
    bob: User, sign_in: SignIn
) -> None:
    assert "No session yet" in sign_in(bob).get(EXPLAIN).text
