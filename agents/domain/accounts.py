"""Accounts: first-run setup, invites, preferences, and limits on signing in."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from agents.conf import conf
from agents.errors import InvalidInputError, NotAllowedError
from agents.models import AuditEntry, Invite, Preferences, User
from agents.models.fields import fitting
from agents.models.users import Role
from agents.rendering.text import clean_text

from . import audit

NAME_CHARACTERS = 150
NAME_IS_TAKEN = "Somebody has this username already."


def preferences_of(user: User) -> Preferences:
    return Preferences.objects.get_or_create(user=user)[0]


def needs_setup() -> bool:
    return not User.objects.exists()


@transaction.atomic
def issue_setup_token() -> str | None:
    """A new one-time token for the first owner; older ones stop working.

    Returns: the token for `/setup/<token>/`, or None when somebody has an account.
    """
    if not needs_setup():
        return None
    Invite.objects.filter(created_by=None).delete()
    return _issue(role=Role.OWNER, created_by=None)


@transaction.atomic
def create_invite(owner: User, *, role: str) -> str:
    """Returns: the token for the link, shown once; only its hash is stored.

    Raises: NotAllowedError for anyone but owners.
    """
    if not owner.is_owner:
        raise NotAllowedError("Only owners can invite people.")
    token = _issue(role=role, created_by=owner)
    audit.record("invite.created", actor=owner, role=role)
    return token


def _issue(*, role: str, created_by: User | None) -> str:
    token = secrets.token_urlsafe(32)
    Invite.objects.create(
        token_sha256=_hash(token),
        role=role,
        created_by=created_by,
        expires_at=timezone.now() + timedelta(days=conf().invite_days),
    )
    return token


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def find_invite(token: str, *, is_setup: bool) -> Invite | None:
    """The open invite of `token`; the setup link works while there is nobody."""
    if is_setup and not needs_setup():
        return None
    return (
        Invite.objects.open()
        .filter(token_sha256=_hash(token), created_by__isnull=is_setup)
        .first()
    )


@transaction.atomic
def accept_invite(
    invite: Invite, *, username: str, password: str, email: str = ""
) -> User:
    """Make the account that the link promises; the link is used up.

    Raises: NotAllowedError when somebody used it first, InvalidInputError when the
        name is none, or was taken a moment ago.
    """
    check_new_username(username)
    if invite.created_by_id is None and not needs_setup():
        raise NotAllowedError("This site has its owner already.")
    # The update looks at the row's own column only: PostgreSQL checks a joined table
    # as it was before the other one's commit, and both would win.
    unused = Invite.objects.filter(pk=invite.pk, accepted_at=None)
    is_open = Invite.objects.open().filter(pk=invite.pk).exists()
    if not is_open or not unused.update(accepted_at=timezone.now()):
        raise NotAllowedError("This link has been used already.")
    user = User(username=username, email=email)
    user.set_password(password)
    set_role(user, Role(invite.role))
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:
        raise InvalidInputError(NAME_IS_TAKEN, field="username") from error
    Preferences.objects.create(user=user)
    Invite.objects.filter(pk=invite.pk).update(accepted_by=user)
    audit.record("account.created", actor=user, target=user, role=invite.role)
    return user


def check_new_username(username: str) -> None:
    """No two accounts may look alike: ASCII only, and case makes no difference.

    Raises: InvalidInputError.
    """
    try:
        User._meta.get_field("username").clean(username, None)
    except ValidationError as error:
        raise InvalidInputError(error.messages[0], field="username") from error
    if User.objects.filter(username__iexact=username).exists():
        raise InvalidInputError(NAME_IS_TAKEN, field="username")


def set_role(user: User, role: Role) -> None:
    """Owners are Django's staff and superusers, so that the admin opens to them."""
    user.role = role
    user.is_staff = user.is_superuser = role == Role.OWNER


def sign_in_is_blocked(username: str, address: str) -> bool:
    """Whether this name or this address failed too often in the last minutes."""
    since = timezone.now() - timedelta(seconds=conf().login_window_seconds)
    failures = AuditEntry.objects.filter(action="login.failed", created_at__gt=since)
    same = Q(data__username=_tried_name(username))
    if address:  # unknown behind a Unix socket; then only the name counts
        same |= Q(**fitting(AuditEntry, address=address))
    return failures.filter(same).count() >= conf().login_attempts


def record_failed_sign_in(username: str, address: str) -> None:
    audit.record(
        "login.failed", actor=None, address=address, username=_tried_name(username)
    )


def _tried_name(username: str) -> str:
    return clean_text(username).lower()[:NAME_CHARACTERS]


def record_sign_in(user: User, address: str) -> None:
    audit.record("login.succeeded", actor=user, target=user, address=address)
