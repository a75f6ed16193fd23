"""People: what owners change about accounts, and everybody about their own.

The site always keeps an active owner; whoever changes roles goes through here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.errors import InvalidInputError, SessionGoneError
from agents.models import AgentSession, Invite, Preferences, User
from agents.models.sessions import ACTIVE_STATUSES
from agents.models.users import Role

from . import accounts, analytics, audit, budgets, releases, runs, sessions
from .locks import lock_session
from .status import publish_status

NO_OWNER_LEFT = "The site needs an owner: make somebody else one first."


def would_leave_no_owner(person: User) -> bool:
    """Whether nobody could manage the site once `person` is stored as it is."""
    if person.is_owner and person.is_active:
        return False
    others = User.objects.filter(role=Role.OWNER, is_active=True)
    return not others.exclude(pk=person.pk).exists()


@dataclass(frozen=True, slots=True)
class BudgetChoice:
    """What may be spent in a period; None: as much as it takes."""

    limit_usd_micros: int | None
    period: str


@transaction.atomic
def save_budget(
    choice: BudgetChoice, actor: User, *, person: User | None = None
) -> None:
    """Of a person, or of the whole site; what waits for it goes on where it may."""
    budgets.set_limit(choice.limit_usd_micros, choice.period, actor=actor, user=person)
    transaction.on_commit(releases.release_within_budgets)


def save_person(
    person: User, actor: User, *, budget: BudgetChoice | None = None
) -> User:
    """Store role, ceiling and whether the account is active, as they stand on it, and
    the budget if one is given.

    An account that is switched off is signed out everywhere and its agents stop. A new
    ceiling binds the agents that are at work: their next calls, and those that wait.

    Raises: InvalidInputError when no active owner would be left.
    """
    before = _store(person, actor, budget)
    if before is not None and before.security_ceiling != person.security_ceiling:
        _bind(person, actor)
    return person


def _bind(person: User, actor: User) -> None:
    """Let the new ceiling hold for what runs and waits; pages say so."""
    releases.settle_of_person(person, actor)
    active = AgentSession.objects.filter(owner=person, status__in=ACTIVE_STATUSES)
    for session_id in active.values_list("pk", flat=True):
        with suppress(SessionGoneError), transaction.atomic():
            lock_session(session_id)
            publish_status(session_id)


@transaction.atomic
def _store(person: User, actor: User, budget: BudgetChoice | None) -> User | None:
    """Returns: the person as stored before, if there was one."""
    # With all owners locked, in one order, two who step down at once can't each see
    # the other one stay.
    concerned = User.objects.filter(Q(pk=person.pk) | Q(role=Role.OWNER))
    locked = concerned.select_for_update(no_key=True).order_by("pk")
    before = {user.pk: user for user in locked}.get(person.pk)
    if before is not None and would_leave_no_owner(person):
        raise InvalidInputError(NO_OWNER_LEFT, field="role")
    accounts.set_role(person, Role(person.role))
    person.save()
    Preferences.objects.get_or_create(user=person)
    audit.record(
        "account.changed" if before else "account.created",
        actor=actor,
        target=person,
        role=person.role,
        security_ceiling=person.security_ceiling,
        allowed_models=person.allowed_models,
        is_active=person.is_active,
    )
    if budget is not None:
        save_budget(budget, actor, person=person)
    if before is not None and before.is_active and not person.is_active:
        _lock_out(person)
    return before


def _lock_out(person: User) -> None:
    sign_out_everywhere(person)
    active = AgentSession.objects.filter(owner=person, status__in=ACTIVE_STATUSES)
    for session in active:
        runs.stop_agent(session)


def sign_out_everywhere(person: User) -> None:
    """Delete the browser sessions of `person`.

    They have no column that says whose they are, so each has to be opened.
    """
    for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator():
        if session.get_decoded().get("_auth_user_id") == str(person.pk):
            session.delete()


@transaction.atomic
def change_password(person: User, password: str, *, actor: User) -> None:
    """Every session of `person` ends, because it carries the old password's hash."""
    person.set_password(password)
    person.save(update_fields=["password"])
    audit.record("password.changed", actor=actor, target=person)


@transaction.atomic
def revoke_invite(invite: Invite, actor: User) -> None:
    audit.record("invite.revoked", actor=actor, target=invite, role=invite.role)
    invite.delete()


@transaction.atomic
def save_preferences(preferences: Preferences) -> Preferences:
    """Raises: InvalidInputError when the security mode is wider than the ceiling."""
    user = preferences.user
    sessions.allowed_security_mode(user, preferences.default_security_mode)
    rows = Preferences.objects.filter(pk=preferences.pk)
    before: dict[str, Any] = dict(rows.values().first() or {})
    preferences.save()
    stored = rows.values().get()
    analytics.settings_changed(
        user, [name for name, value in stored.items() if before.get(name) != value]
    )
    return preferences
