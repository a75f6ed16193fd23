"""The real engine on the demo model: gateway, jail, SDK and CLI, in the test's loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from asgiref.sync import sync_to_async

from agents.demo.conversation import read_conversation
from agents.demo.server import DemoServer
from agents.demo.state import RecordedRequest
from agents.domain import accounts, approvals, messages, runs, sessions
from agents.domain.approvals import Decision
from agents.execution.confinement import reset_probe
from agents.execution.engine import Engine
from agents.models import AgentSession, ApprovalRequest, Message, Run, User
from agents.models.approvals import ApprovalStatus
from agents.models.messages import MessageRole
from agents.models.runs import RunState
from agents.models.users import Role

from .jail import Session

T = TypeVar("T")
# Only a failing test waits this long; a busy machine is slow, not wrong.
PATIENCE_SECONDS = 120


async def in_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    return await sync_to_async(function, thread_sensitive=True)(*args, **kwargs)


async def until(
    condition: Callable[[], T | None], seconds: float = PATIENCE_SECONDS
) -> T:
    """Wait for a state of the database, never for a time."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        found = await in_thread(condition)
        if found:
            return found
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"waited {seconds} s for {condition}")
        await asyncio.sleep(0.02)


@pytest.fixture(scope="session")
def demo() -> Iterator[DemoServer]:
    with DemoServer() as server:
        yield server


@pytest.fixture
async def start_engine(
    transactional_db: None, demo: DemoServer
) -> AsyncIterator[Callable[[], Awaitable[Engine]]]:
    """Starts an engine when the test is ready; it may be stopped early, and again."""
    started: list[Engine] = []

    async def start() -> Engine:
        engine = Engine()
        started.append(engine)
        await engine.start(demo_url=demo.url)
        return engine

    yield start
    for engine in started:
        await engine.stop()


@pytest.fixture
async def engine(start_engine: Callable[[], Awaitable[Engine]]) -> Engine:
    return await start_engine()


@pytest.fixture
def alice(transactional_db: None) -> User:
    user = User(username="alice")
    accounts.set_role(user, Role.OWNER)
    user.save()
    return user


class Chat:
    """One session, driven as a person would."""

    def __init__(self, session: AgentSession, user: User) -> None:
        self.session = session
        self.user = user

    @classmethod
    async def launch(cls, user: User, task: str, **config: Any) -> Chat:
        launch = sessions.LaunchConfig(task=task, **config)
        return cls(await in_thread(sessions.launch_agent, user, launch), user)

    async def send(self, text: str) -> Message:
        return await in_thread(
            messages.send_message, self.session, author=self.user, text=text
        )

    async def finished(self, count: int = 1) -> Run:
        """The newest run, once `count` runs are finished."""

        def look() -> Run | None:
            runs = self.session.runs.filter(state=RunState.FINISHED)
            return runs.last() if runs.count() >= count else None

        return await until(look)

    async def pending(self) -> ApprovalRequest:
        return await until(
            lambda: self.session.approvals.filter(status=ApprovalStatus.PENDING).first()
        )

    async def decide(self, **decision: Any) -> ApprovalRequest:
        approval = await self.pending()
        return await in_thread(
            approvals.decide_approval, approval, self.user, Decision(**decision)
        )

    async def stop(self) -> None:
        assert await in_thread(runs.stop_agent, self.session)

    async def retry(self) -> Run:
        return await in_thread(runs.retry_last_run, self.session)

    async def go_on(self) -> Run:
        return await in_thread(runs.continue_session, self.session)

    async def writing(self, words: str = "") -> Message:
        """The answer that is being written, once `words` stand in its row."""
        answers = self.session.messages.filter(
            role=MessageRole.ASSISTANT, is_streaming=True, text__contains=words
        )
        return await until(lambda: answers.exclude(text="").last())

    async def notice(self, kind: str) -> Message:
        return await until(
            lambda: self.session.messages.filter(
                role=MessageRole.SYSTEM, content__kind=kind
            ).last()
        )

    async def results(self) -> list[Message]:
        return [r for r in await self.rows() if r.role == MessageRole.TOOL_RESULT]

    async def notices(self) -> list[tuple[str, str]]:
        """All cards as (kind, text)."""
        rows = [row for row in await self.rows() if row.role == MessageRole.SYSTEM]
        return [(row.content["kind"], row.text) for row in rows]

    async def requests(self, demo: DemoServer) -> list[RecordedRequest]:
        """What the model was asked in this conversation, sub-agents left out."""
        branch = await in_thread(lambda: self.session.branches.get())
        wanted = str(branch.sdk_session_id)
        calls = demo.state.model_calls
        return [c for c in calls if c.session_id == wanted and not c.agent_id]

    async def prompts(self, demo: DemoServer) -> list[str]:
        """Every user text that the model was sent with its last request."""
        last = (await self.requests(demo))[-1]
        return [e.prompt for e in read_conversation(last.body or {}).exchanges]

    def file(self, name: str) -> Path:
        return Path(self.session.cwd) / name

    async def rows(self) -> list[Message]:
        return await in_thread(lambda: list(self.session.messages.order_by("seq")))

    async def reload(self) -> AgentSession:
        await in_thread(self.session.refresh_from_db)
        return self.session


@pytest.fixture
def agent() -> Iterator[Session]:
    """The folders and processes of a session without its rows."""
    session = Session()
    yield session
    session.clean_up()


@pytest.fixture
def other_agent() -> Iterator[Session]:
    session = Session()
    yield session
    session.clean_up()


@pytest.fixture
def fresh_probe() -> Iterator[None]:
    reset_probe()
    yield
    reset_probe()
