"""API tokens: shown once, known by their hash, ended by time or by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents.domain import tokens
from agents.errors import InvalidInputError
from agents.models import ApiToken, AuditEntry, User
from agents.models.tokens import TokenScope

pytestmark = pytest.mark.django_db


def make(user: User, **options: Any) -> str:
    options = {"name": "Script", "scopes": ["read"], "days": None, **options}
    return tokens.create_token(user, **options)


def test_a_token_is_found_and_only_its_hash_is_stored(alice: User) -> None:
    token = make(alice, scopes=["write", "read"])

    found = tokens.find_token(token)

    assert found is not None
    assert (found.user, found.scopes) == (alice, ["read", "write"])
    assert token.startswith(found.prefix)
    row = str(ApiToken.objects.values().get())
    assert token not in row
    assert token[len(found.prefix) :] not in row
    assert token not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize("wrong", ["", "osw_", "osw_wrong", "\ud800", "x" * 9999])
def test_what_is_no_token_finds_nobody(alice: User, wrong: str) -> None:
    make(alice)

    assert tokens.find_token(wrong) is None


def test_a_token_ends_with_its_time_its_person_or_by_hand(alice: User) -> None:
    expired, revoked, of_nobody = (make(alice, days=1) for _ in range(3))
    rows = list(ApiToken.objects.order_by("created_at"))
    ApiToken.objects.filter(pk=rows[0].pk).update(expires_at=timezone.now())
    tokens.revoke_token(rows[1], alice)

    assert tokens.find_token(expired) is None
    assert tokens.find_token(revoked) is None
    assert tokens.find_token(of_nobody) is not None
    assert tokens.still_works(rows[2].pk, TokenScope.READ) == alice
    assert tokens.still_works(rows[2].pk, TokenScope.WRITE) is None
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert tokens.find_token(of_nobody) is None
    assert tokens.still_works(rows[2].pk, TokenScope.READ) is None
    actions = AuditEntry.objects.filter(action__startswith="token.")
    assert sorted(actions.values_list("action", flat=True)) == [
        *["token.created"] * 3,
        "token.revoked",
    ]


def test_its_use_is_noted_once_a_minute(alice: User) -> None:
    token = make(alice)
    tokens.find_token(token)
    [first] = ApiToken.objects.values_list("last_used_at", flat=True)
    assert first is not None

    tokens.find_token(token)
    [second] = ApiToken.objects.values_list("last_used_at", flat=True)
    long_ago = timezone.now() - timedelta(hours=1)
    ApiToken.objects.update(last_used_at=long_ago)
    tokens.find_token(token)
    [third] = ApiToken.objects.values_list("last_used_at", flat=True)

    assert second == first
    assert third is not None
    assert third > long_ago


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"name": " \0 "}, None),
        ({"name": ""}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["read", "rule"]}, "scopes"),
        ({"days": 0}, "days"),
        ({"days": 10**9}, "days"),
    ],
)
def test_what_makes_no_token_is_said(
    alice: User, options: dict[str, Any], field: str | None
) -> None:
    if field is None:  # a NUL is shown, not refused
        assert make(alice, **options)
        return
    with pytest.raises(InvalidInputError) as refused:
        make(alice, **options)

    assert refused.value.field == field
    assert not ApiToken.objects.exists()


def test_nobody_collects_tokens_without_end(alice: User, bob: User) -> None:
    for _ in range(tokens.MAX_TOKENS):
        make(alice)

    with pytest.raises(InvalidInputError):
        make(alice)
    assert make(bob)


def test_wrong_tokens_are_noted_until_they_are_too_many(
    alice: User, override_conf: Any
) -> None:
    override_conf(login_attempts=2)

    answers = [tokens.refuse_token("192.0.2.1") for _ in range(4)]

    assert answers == [False, False, True, True]
    assert tokens.refuse_token("192.0.2.2") is False
    assert AuditEntry.objects.filter(address="192.0.2.1").count() == 2
