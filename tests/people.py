"""Accounts for tests of pages, and browsers signed in with them."""

from __future__ import annotations

from django.test import Client

from agents.domain.accounts import preferences_of, set_role
from agents.models import User
from agents.models.users import Role

PASSWORD = "correct horse battery"


def person(username: str, role: Role = Role.MEMBER, **fields) -> User:
    user = User(username=username, **fields)
    user.set_password(PASSWORD)
    set_role(user, role)
    user.save()
    preferences_of(user)
    return user


def browser(user: User | None = None, **options) -> Client:
    client = Client(**options)
    if user is not None:
        client.force_login(user)
    return client
