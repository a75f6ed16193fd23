"""People of every test: alice owns things, bob shares some, charlie is a stranger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from django.test import Client

from agents.conf import Conf
from agents.models import AgentSession, Run, User

from . import factories

pytest_plugins = ("tests.order", "tests.skips")


@pytest.fixture
def alice(db: None) -> User:
    return factories.make_user("alice")


@pytest.fixture
def bob(db: None) -> User:
    return factories.make_user("bob")


@pytest.fixture
def charlie(db: None) -> User:
    return factories.make_user("charlie")


@pytest.fixture
def session(alice: User) -> AgentSession:
    """Alice's agent, its first message sent and its run queued."""
    return factories.make_session(alice)


@pytest.fixture
def run(session: AgentSession) -> Run:
    """The run of alice's agent, claimed by a worker."""
    return factories.start_turn(session)


@pytest.fixture
def sign_in() -> Callable[[User], Client]:
    """A browser of its own for each person."""

    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def override_conf(settings: Any) -> Callable[..., None]:
    """Change numbers of `agents.conf` for one test."""

    def override(**values: Any) -> None:
        known = {field.name for field in fields(Conf)}
        assert set(values) <= known, "no such setting"
        settings.OPENSWARM = {**settings.OPENSWARM, **values}

    return override


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out what is about the other kind of database: it runs in its own run."""
    from django.db import connection

    others = [item for item in items if _is_for_another(item, connection.vendor)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def _is_for_another(item: pytest.Item, vendor: str) -> bool:
    marker = item.get_closest_marker("database")
    return marker is not None and marker.args != (vendor,)
