"""A running gateway, a session to call for, and the demo model."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pytest_django.fixtures import Settings

from agents.demo.server import DemoServer
from agents.gateway.server import Gateway
from agents.models import AgentSession, User

from .caller import Caller


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """Short: pytest's own folders leave no room for a socket's name."""
    folder = Path(tempfile.mkdtemp(prefix="gw-"))
    yield folder / "gateway"
    shutil.rmtree(folder)


@pytest.fixture
async def gateway(
    socket_folder: Path, transactional_db: None
) -> AsyncIterator[Gateway]:
    gateway = Gateway(folder=socket_folder)
    await gateway.start()
    yield gateway
    await gateway.stop()


@pytest.fixture
def demo() -> Iterator[DemoServer]:
    with DemoServer() as demo:
        yield demo


@pytest.fixture
def session(transactional_db: None) -> AgentSession:
    owner = User.objects.create_user(username="alice")
    return AgentSession.objects.create(owner=owner, name="A session")


@pytest.fixture
async def caller(gateway: Gateway) -> AsyncIterator[Caller]:
    """For calls of a session without a row: nothing is written for it."""
    async with Caller(gateway, uuid4()) as caller:
        yield caller


@pytest.fixture
async def session_caller(
    gateway: Gateway, session: AgentSession
) -> AsyncIterator[Caller]:
    async with Caller(gateway, session.pk) as caller:
        yield caller


@pytest.fixture
async def caller_with_short_patience(
    settings: Settings, socket_folder: Path, transactional_db: None
) -> AsyncIterator[Caller]:
    """Of a gateway that waits only a moment for its upstreams."""
    settings.OPENSWARM = {
        **settings.OPENSWARM,
        "gateway_read_timeout_seconds": 0.2,
        "gateway_join_ms": 0,
    }
    gateway = Gateway(folder=socket_folder)
    await gateway.start()
    async with Caller(gateway, uuid4()) as caller:
        yield caller
    await gateway.stop()
