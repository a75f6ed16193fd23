"""API tokens: making one, finding whose it is, revoking it, limits on wrong ones."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agents.conf import conf
from agents.errors import InvalidInputError
from agents.models import ApiToken, AuditEntry, User
from agents.models.fields import fitting
from agents.models.tokens import TokenScope
from agents.rendering.text import clean_text

from . import audit

TOKEN_PREFIX = "osw_"  # noqa: S105  how every token begins, for scanners of leaks
SHOWN_CHARACTERS = 9
MAX_DAYS = 3660
MAX_TOKENS = 50
USED_EVERY = timedelta(minutes=1)


@transaction.atomic
def create_token(
    user: User, *, name: str, scopes: Collection[str], days: int | None
) -> str:
    """Make a token that works for `days`, or with None until it is revoked.

    Returns: the token, shown once; only its hash is stored.
    Raises: InvalidInputError naming the field.
    """
    name = clean_text(name).strip()
    _check(user, name, scopes, days)
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    made = ApiToken.objects.create(
        user=user,
        token_sha256=_hash(token),
        prefix=token[:SHOWN_CHARACTERS],
        scopes=[scope.value for scope in TokenScope if scope in scopes],
        expires_at=None if days is None else timezone.now() + timedelta(days=days),
        **fitting(ApiToken, name=name),
    )
    audit.record(
        "token.created", actor=user, target=made, name=made.name, scopes=made.scopes
    )
    return token


def _check(user: User, name: str, scopes: Collection[str], days: int | None) -> None:
    if not name:
        raise InvalidInputError("Give the token a name.", field="name")
    if not scopes:
        raise InvalidInputError("Choose what the token may do.", field="scopes")
    if unknown := set(scopes) - set(TokenScope.values):
        raise InvalidInputError(f"There is no scope “{min(unknown)}”.", field="scopes")
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise InvalidInputError(
            f"A token can work for 1 to {MAX_DAYS} days.", field="days"
        )
    if user.api_tokens.count() >= MAX_TOKENS:
        raise InvalidInputError(
            f"You have {MAX_TOKENS} tokens already. Revoke one that you don’t need."
        )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def find_token(token: str) -> ApiToken | None:
    """The working token with its user, and a note that it was used."""
    working = ApiToken.objects.working().select_related("user")
    found = working.filter(token_sha256=_hash(token)).first()
    if found is not None:
        _note_use(found)
    return found


def _note_use(token: ApiToken) -> None:
    """At most once a minute: a program that polls must not write each time."""
    now = timezone.now()
    if token.last_used_at is None or token.last_used_at < now - USED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)


def still_works(token_id: UUID, scope: TokenScope) -> User | None:
    """Whose token it is, while it works and has the scope; for long answers."""
    found = ApiToken.objects.working().select_related("user").filter(pk=token_id)
    token = found.first()
    return token.user if token is not None and scope in token.scopes else None


@transaction.atomic
def revoke_token(token: ApiToken, actor: User) -> None:
    audit.record("token.revoked", actor=actor, target=token, name=token.name)
    token.delete()


def refuse_token(address: str) -> bool:
    """Note that a wrong token came from `address`.

    Returns: whether too many did in the last minutes; those are not noted any more,
        so that nobody can fill the audit. A token that works is never held up.
    """
    since = timezone.now() - timedelta(seconds=conf().login_window_seconds)
    failures = AuditEntry.objects.filter(
        action="token.refused",
        created_at__gt=since,
        **fitting(AuditEntry, address=address),
    )
    if failures.count() >= conf().login_attempts:
        return True
    audit.record("token.refused", actor=None, address=address)
    return False
