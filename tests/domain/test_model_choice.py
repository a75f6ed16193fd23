"""Which model is asked: four levels, short names, prefixes, and who may use what."""

from __future__ import annotations

from typing import Any

import pytest

from agents.domain import messages, model_choice, sessions
from agents.domain.accounts import preferences_of
from agents.domain.model_choice import (
    check_model,
    choose_model,
    get_session_model,
    is_same_model,
    resolve_model_id,
)
from agents.domain.queries.models import load_models, load_session_models
from agents.errors import InvalidInputError
from agents.models import AgentSession, Provider, User
from tests import factories

pytestmark = pytest.mark.django_db


def make(owner: User | None = None, **fields: Any) -> Provider:
    defaults = {"name": "Mine", "kind": "gateway", "base_url": "https://g.example"}
    return Provider.objects.create(owner=owner, **{**defaults, **fields})


def test_the_message_comes_before_session_person_and_site(
    session: AgentSession, alice: User, override_conf: Any
) -> None:
    override_conf(default_model="claude-site")
    session.model = ""
    assert choose_model(session) == model_choice.ModelChoice("claude-site", "site")

    preferences = preferences_of(alice)
    preferences.default_model = "claude-hers"
    preferences.save()
    assert choose_model(session).chosen_by == "person"
    assert get_session_model(session) == "claude-hers"

    session.model = "claude-chosen"
    assert choose_model(session).chosen_by == "session"
    assert get_session_model(session) == "claude-chosen"

    chosen = choose_model(session, "claude-now")
    assert chosen == model_choice.ModelChoice("claude-now", "message")


@pytest.mark.parametrize(
    ("name", "found", "expected"),
    [
        ("opus", [], "claude-opus-5-5"),
        ("OPUS", [], "claude-opus-5-5"),
        ("sonnet[1m]", [], "claude-sonnet-5-5[1m]"),
        ("haiku", ["claude-haiku-5-5", "claude-haiku-9"], "claude-haiku-5-5"),
        ("haiku", ["claude-haiku-5-5-20260101"], "claude-haiku-5-5"),
        ("opus", ["claude-opus-4-1", "claude-opus-4-8", "x"], "claude-opus-4-8"),
        ("opus", ["opus", "claude-opus-5-5"], "opus"),
        ("opus", ["llama-9"], "claude-opus-5-5"),
        ("default", [], "claude-site"),
        ("claude-x", [], "claude-x"),
        ("", [], ""),
    ],
)
def test_short_names_mean_what_the_provider_has(
    name: str, found: list[str], expected: str, override_conf: Any
) -> None:
    override_conf(default_model="claude-site")
    assert resolve_model_id(name, Provider(models_found=found)) == expected


@pytest.mark.parametrize(
    ("prefix", "name", "expected"),
    [
        ("cc/", "opus", "cc/claude-opus-5-5"),
        ("cc/", "cc/claude-x", "cc/claude-x"),
        ("cc/", "claude-x[1m]", "cc/claude-x[1m]"),
        ("claude", "claude-x", "claude-x"),
    ],
)
def test_a_prefix_stands_in_front_once(prefix: str, name: str, expected: str) -> None:
    assert resolve_model_id(name, Provider(model_prefix=prefix)) == expected


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("cc/claude-x", "claude-x", True),
        ("claude-x[1m]", "claude-x", True),
        ("claude-haiku-4-5", "claude-haiku-4-5-20251001", True),
        ("claude-opus-5", "claude-opus-5-5", False),
        ("claude-opus-4-1", "claude-opus-5-5", False),
    ],
)
def test_dates_prefixes_and_windows_make_no_other_model(
    asked: str, answered: str, same: bool
) -> None:
    assert is_same_model(asked, answered) is same


def test_a_list_without_the_model_refuses_it_in_a_sentence(alice: User) -> None:
    provider = make(
        alice, model_prefix="cc/", models_found=["cc/claude-a", "cc/claude-b"]
    )

    for name in ("claude-a", "cc/claude-b", "claude-a[1m]", "claude-b-20260101"):
        check_model(name, provider, alice)
    with pytest.raises(InvalidInputError) as refused:
        check_model("claude-c", provider, alice)

    assert refused.value.field == "model"
    assert refused.value.user_message == (
        "Mine does not offer “claude-c”. It offers claude-a, claude-b."
    )


def test_a_provider_without_a_list_takes_any_name(alice: User) -> None:
    check_model("anything/at-all", make(alice), alice)
    check_model("anything", make(alice, models_typed=["typed"]), alice)
    check_model("typed", make(alice, models_found=["a"], models_typed=["typed"]), alice)


def test_an_owner_says_which_models_a_person_may_use(
    alice: User, bob: User, session: AgentSession
) -> None:
    bob.allowed_models = "claude-haiku-*\nclaude-sonnet-5-5"
    bob.save()

    for name in ("haiku", "claude-sonnet-5-5", "cc/claude-haiku-4-5", "sonnet[1m]"):
        check_model(name, Provider(), bob)
    with pytest.raises(InvalidInputError, match="bob may not use “claude-opus-5-5”"):
        check_model("opus", Provider(), alice, bob)
    with pytest.raises(InvalidInputError, match="bob may not use"):
        sessions.update_session(session, bob, model="opus")
    with pytest.raises(InvalidInputError, match="bob may not use"):
        messages.send_message(session, author=bob, text="Hi", model="opus")
    with pytest.raises(InvalidInputError, match="bob may not use"):
        factories.make_session(bob, model="opus")


def test_a_session_knows_who_chose_its_model_and_when(
    alice: User, session: AgentSession
) -> None:
    assert factories.make_session(alice).model_set_by is None
    assert factories.make_session(alice, model="opus").model_set_by == alice

    sessions.update_session(session, alice, model="claude-x")
    assert (session.model, session.model_set_by) == ("claude-x", alice)
    assert session.model_set_at is not None


def test_a_message_keeps_its_model_and_a_refused_one_is_not_sent(
    alice: User, session: AgentSession
) -> None:
    session.provider = make(alice, models_found=["claude-a"])
    session.save()

    sent = messages.send_message(session, author=alice, text="Hi", model=" claude-a ")
    assert sent.model == "claude-a"
    with pytest.raises(InvalidInputError, match="does not offer"):
        messages.send_message(session, author=alice, text="Ho", model="claude-b")
    assert not session.messages.filter(text="Ho").exists()


def labels(groups: list[Any]) -> dict[str, list[str]]:
    return {group.title: [option.label for option in group.options] for group in groups}


def test_the_picker_groups_by_provider_and_marks_what_is_known(
    alice: User, bob: User, session: AgentSession
) -> None:
    session.provider = make(
        alice, name="G", models_found=["llama-9", "claude-opus-4-8"]
    )
    session.save()
    make(bob, name="Of bob", models_found=["secret"])
    make(alice, name="Off", models_found=["off"], is_enabled=False)
    make(None, name="Site", kind="anthropic")

    assert labels(load_session_models(session, alice)) == {
        "Short names": ["opus (claude-opus-4-8, 1M context)"],
        "G": [
            "llama-9 (200k context, unverified)",
            "claude-opus-4-8 (1M context)",
        ],
    }
    found = labels(load_models(alice))
    assert list(found) == ["Short names", "G", "Site"]
    assert "claude-haiku-5-5 (1M context)" in found["Site"]


def test_the_picker_leaves_out_what_a_person_may_not_use(alice: User) -> None:
    alice.allowed_models = "*haiku*"
    alice.save()

    names = {option.name for group in load_models(alice) for option in group.options}
    assert names == {"haiku", "claude-haiku-5-5"}
