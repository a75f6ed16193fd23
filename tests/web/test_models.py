"""Choosing models on pages: suggestions, the composer's list, sentences, fallbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from agents.domain import notices
from agents.domain.messages import send_message
from agents.models import AgentSession, Provider, Run, User
from agents.models.users import Role
from tests import factories
from tests.dom import Node, parse

HTMX = {"HX-Request": "true"}
SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


@pytest.fixture
def offered(run: Run, alice: User) -> AgentSession:
    """An idle session whose provider lists two models."""
    run.session.provider = Provider.objects.create(
        owner=alice,
        name="Mine",
        kind="gateway",
        base_url="https://g.example",
        models_found=["claude-opus-4-8", "llama-9"],
    )
    run.session.save()
    factories.end_turn(run)
    return run.session


def page_of(response: Any) -> Node:
    return parse(response.content.decode())


def options(node: Node) -> dict[str, str]:
    return {
        str(option.attributes["value"]): option.words
        for option in node.find_all("option")
    }


def test_the_composer_offers_the_providers_models_without_any_script(
    offered: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client, path = sign_in(alice), f"/sessions/{offered.pk}/"

    select = page_of(client.get(path)).find("composer-choice")
    assert options(select) == {
        "": "claude-sonnet-5-5",
        "opus": "opus (claude-opus-4-8, 1M context)",
        "claude-opus-4-8": "claude-opus-4-8 (1M context)",
        "llama-9": "llama-9 (200k context, unverified)",
    }
    groups = select.find_all("optgroup")
    assert [group.attributes["label"] for group in groups] == ["Short names", "Mine"]

    sent = client.post(f"{path}messages/", {"text": "Hi", "model": "llama-9"})
    assert sent.status_code == 302
    message = offered.messages.get(text="Hi")
    assert message.model == "llama-9"
    assert "With llama-9" in page_of(client.get(path)).words


@pytest.mark.parametrize("headers", [HTMX, {}])
def test_a_model_that_is_not_offered_is_refused_in_a_sentence(
    offered: AgentSession, alice: User, sign_in: SignIn, headers: dict[str, str]
) -> None:
    response = sign_in(alice).post(
        f"/sessions/{offered.pk}/messages/",
        {"text": "Hi", "model": "gpt-9"},
        headers=headers,
    )

    assert response.status_code == 422
    errors = page_of(response).find("composer-errors").words
    assert "Mine does not offer “gpt-9”. It offers claude-opus-4-8, llama-9." in errors
    assert not offered.messages.filter(text="Hi").exists()


def test_after_a_message_the_next_one_is_the_sessions_own_again(
    offered: AgentSession, alice: User, sign_in: SignIn
) -> None:
    response = sign_in(alice).post(
        f"/sessions/{offered.pk}/messages/",
        {"text": "Hi", "model": "llama-9"},
        headers=HTMX,
    )

    select = page_of(response).find("composer-choice")
    assert select.attributes["hx-swap-oob"] == "true"
    chosen = [o for o in select.find_all("option") if "selected" in o.attributes]
    assert [option.attributes["value"] for option in chosen] == [""]


def test_settings_say_whose_choice_the_model_is(
    offered: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client, path = sign_in(alice), f"/sessions/{offered.pk}/"
    same = {"mode": "agent", "security_mode": "ask", "network": "none", "effort": "low"}

    assert "Now claude-sonnet-5-5, the site’s default." in client.get(path).text
    refused = client.post(f"{path}settings/", {**same, "model": "gpt-9"}, headers=HTMX)
    assert refused.status_code == 422
    assert "does not offer “gpt-9”" in refused.text

    assert client.post(f"{path}settings/", {**same, "model": "opus"}).status_code == 302
    assert "Now opus, chosen by alice." in client.get(path).text


def test_a_new_agent_is_offered_every_model_and_refused_others(
    offered: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    page = page_of(client.get("/sessions/new/"))

    suggested = page.find("id_model-models")
    assert page.find("id_model").attributes["list"] == "id_model-models"
    assert options(suggested)["llama-9"] == "Mine: 200k context, unverified"

    form = {"task": "Go", "mode": "agent", "effort": "low", "security_mode": "ask"}
    refused = client.post(
        "/sessions/new/", {**form, "network": "none", "model": "gpt-9"}
    )
    assert refused.status_code == 422
    assert "Mine does not offer “gpt-9”." in refused.text
    started = client.post(
        "/sessions/new/", {**form, "network": "none", "model": "haiku"}
    )
    assert started.status_code == 422  # its list has no small one


def test_the_header_and_a_card_show_a_fallback(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    Run.objects.update(model_requested="claude-opus-4-1")
    run.model_requested = "claude-opus-4-1"
    notices.record_fallback(run, "claude-opus-4-1-20250805")
    notices.record_fallback(run, "claude-opus-5-5")
    factories.end_turn(run, model_actual="claude-opus-5-5")

    page = page_of(sign_in(alice).get(f"/sessions/{run.session_id}/"))

    assert (
        page.words.count("claude-opus-4-1 was asked for, claude-opus-5-5 answers.") == 1
    )
    facts = page.find(f"session-{run.session_id}-facts")
    assert "claude-opus-5-5" in facts.words
    assert "Fallback" in facts.words


def test_a_fallback_that_goes_on_is_told_once(run: Run) -> None:
    Run.objects.update(model_requested="auto")
    run.model_requested = "auto"
    assert notices.record_fallback(run, "llama-9")
    factories.end_turn(run, model_actual="llama-9")

    run.session.refresh_from_db()
    send_message(run.session, author=run.session.owner, text="Again")
    later = factories.start_turn(run.session)
    later.model_requested = "auto"
    assert notices.record_fallback(later, "llama-9") is None
    assert notices.record_fallback(later, "llama-10")


def test_owners_say_which_models_a_person_may_use(
    alice: User, bob: User, sign_in: SignIn
) -> None:
    User.objects.filter(pk=alice.pk).update(role=Role.OWNER)
    alice.refresh_from_db()
    data = {"role": "member", "security_ceiling": "ask", "is_active": "on"}

    sign_in(alice).post(
        f"/settings/people/{bob.pk}/", {**data, "allowed_models": "claude-haiku-*"}
    )

    bob.refresh_from_db()
    assert bob.allowed_models == "claude-haiku-*"
    page = page_of(sign_in(bob).get("/sessions/new/"))
    assert set(options(page.find("id_model-models"))) == {"haiku", "claude-haiku-5-5"}
