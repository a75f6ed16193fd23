"""kill -9 at ten points of a turn, with two queued messages and a child session.

Whatever the point: nothing that was said is lost, nothing runs twice, the rows are
whole, and the ledger equals what the demo model says it sent.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.demo.conversation import read_conversation
from agents.demo.server import DemoServer
from agents.domain import invocation, messages, runs
from agents.domain.queries.transcript import load_transcript
from agents.domain.sessions import LaunchConfig, launch_agent
from agents.domain.status import derive_status
from agents.execution.engine import Engine
from agents.execution.processes import find_marked
from agents.models import AgentSession, CostEntry, MessageBranch, Run, User
from agents.models.approvals import ApprovalStatus
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.runs import RunState

from .conftest import Chat, in_thread, until
from .crashing import Server
from .test_cost import price

pytestmark = pytest.mark.cli

StartEngine = Callable[[], Awaitable[Engine]]
INVOKE = "mcp__openswarm-invoke-agent__InvokeAgent"
HELD = "demo: hold {gate} after 3 words\ndemo: say and the rest"
QUEUED = ["say: second", "say: third"]
WRITE = {"command": "echo ran >> log.txt"}
LINGER = {"command": "echo ran >> log.txt; while [ ! -e go ]; do sleep 0.05; done"}


def bash(tool_input: dict[str, str]) -> str:
    return f"demo: tool Bash {json.dumps(tool_input)}"


@dataclass(frozen=True)
class Point:
    """A point of a turn: how the turn gets there, and by what it is known."""

    name: str
    script: str = "say: first"
    stands: str = ""
    """Where the turn stands when the server is killed; else it is once `is_reached`."""
    is_reached: Callable[[AgentSession], object] = lambda session: True
    security_mode: str = "full"
    continues: bool = True
    """Whether the person continues the turn, or only lets the queue go on: asked to
    continue, the model makes a call again that it saw no result of."""

    @property
    def writes(self) -> bool:
        return "log.txt" in self.script


def said(role: str, **fields: object) -> Callable[[AgentSession], object]:
    return lambda session: session.messages.filter(role=role, **fields).exists()


POINTS = [
    Point("before-the-claim", stands="before agents.domain.runs.claim_run"),
    Point("claimed", stands="after agents.domain.runs.claim_run"),
    Point("cli-connected", stands="before agents.domain.runs.mark_running"),
    Point(
        "prompt-sent",
        "demo: hold {gate}\ndemo: say first",
        is_reached=lambda session: CostEntry.objects.filter(session=session).exists(),
    ),
    Point("mid-answer", HELD, is_reached=said("assistant", text__contains="cedar-3")),
    Point(
        "approval-pending",
        bash(WRITE),
        is_reached=lambda session: session.approvals.pending().exists(),
        security_mode="ask",
    ),
    Point(
        "tool-running",
        bash(LINGER),
        is_reached=lambda session: wrote(session),
        continues=False,
    ),
    Point(
        "after-the-result",
        bash(WRITE) + "\n" + HELD,
        is_reached=said("assistant", text__contains="cedar-3"),
    ),
    Point("child-at-work", "", is_reached=lambda session: child_words(session, 2)),
    Point("before-the-end", stands="before agents.domain.changes.note_changes"),
]


def wrote(session: AgentSession) -> bool:
    return Path(session.cwd, "log.txt").exists()


def child_words(session: AgentSession, count: int = 1) -> bool:
    heard = session.children.filter(messages__text__contains="cedar-3")
    return heard.count() >= count


@dataclass
class Scene:
    """A session with two messages in its queue and a child that is held at work."""

    point: Point
    chat: Chat
    child: Chat
    source: AgentSession

    @property
    def gates(self) -> list[str]:
        name = self.point.name
        return [f"{name}-turn", f"{name}-child", f"{name}-asked"]

    @property
    def chats(self) -> list[Chat]:
        return [self.chat, self.child]


def held(gate: str) -> str:
    return HELD.replace("{gate}", gate)


def build(point: Point, alice: User) -> tuple[AgentSession, AgentSession, AgentSession]:
    def launch(task: str, name: str) -> AgentSession:
        config = LaunchConfig(task=task, name=name, security_mode=point.security_mode)
        return launch_agent(alice, config)

    source = launch("say: known", "Source")
    runs.stop_agent(source)
    script = point.script.replace("{gate}", f"{point.name}-turn")
    if not script:
        arguments = {
            "session_id": str(source.pk),
            "message": held(f"{point.name}-asked"),
        }
        script = f"demo: tool {INVOKE} {json.dumps(arguments)}"
    session = launch(script, "Crashing")
    for text in QUEUED:
        messages.send_message(session, author=alice, text=text)
    child = invocation.invoke_agent(session.pk, source.pk, held(f"{point.name}-child"))
    return session, child, source


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
async def test_nothing_is_lost_and_nothing_runs_twice(
    point: Point,
    transactional_db: None,
    start_engine: StartEngine,
    alice: User,
    demo: DemoServer,
) -> None:
    before = len(demo.state.usage_log)
    session, child, source = await in_thread(build, point, alice)
    scene = Scene(point, Chat(session, alice), Chat(child, alice), source)

    await crash(scene, demo, before)
    await in_thread(runs.reconcile_on_startup)
    await in_thread(rows_are_whole, scene)
    for gate in scene.gates:
        demo.state.release(gate)
    await start_engine()
    await carry_on(scene)

    await in_thread(rows_are_whole, scene)
    await in_thread(everything_was_answered, scene)
    await everything_was_heard_once(scene, demo)
    if point.writes:
        assert scene.chat.file("log.txt").read_text() == "ran\n"
    await until(lambda: ledger() == sent_since(demo, before))


async def crash(scene: Scene, demo: DemoServer, before: int) -> None:
    point = scene.point
    run = await in_thread(scene.chat.session.runs.get)
    ids = (str(scene.chat.session.pk), str(run.pk))
    where = (point.stands, *ids) if point.stands else ()
    server = await in_thread(Server, demo, *where)
    try:
        if point.stands:
            await until(lambda: server.stands)
        else:
            await until(lambda: point.is_reached(scene.chat.session))
        # What is still on its way to the ledger would make a race of the kill.
        if "claim_run" not in point.stands:
            await until(lambda: child_words(scene.chat.session))
        await until(lambda: is_at_rest_or_held(scene, demo, before))
        await until(lambda: ledger() == sent_since(demo, before))
    finally:
        await in_thread(server.kill)
    await until(lambda: not any(find_marked(each.session.pk) for each in scene.chats))


def is_at_rest_or_held(scene: Scene, demo: DemoServer, before: int) -> bool:
    """Whether the model has said all that it will say before the kill."""
    held = MessageBranch.objects.exclude(session=scene.chat.session)
    if "hold" in scene.point.script:
        held = MessageBranch.objects.all()
    conversations = {str(branch.sdk_session_id) for branch in held}
    calls = demo.state.usage_log[before:]
    unfinished = [each for each in calls if not each.finished]
    return all(each.session_id in conversations for each in unfinished)


def ledger() -> set[tuple[str, int | None]]:
    return set(CostEntry.objects.values_list("message_id", "usd_micros"))


def sent_since(demo: DemoServer, before: int) -> set[tuple[str, int | None]]:
    return {(each.message_id, price(each)) for each in demo.state.usage_log[before:]}


async def carry_on(scene: Scene) -> None:
    """What a person does who comes back: decide, continue, let the queue go on."""
    chat = scene.chat
    await in_thread(chat.file("go").touch)
    run = await in_thread(
        lambda: chat.session.runs.exclude(state=RunState.FINISHED).first()
    )
    if run is not None and run.state == RunState.PARKED:
        await chat.decide(is_approved=True)
    elif run is None and scene.point.continues:
        await chat.go_on()
    await until(lambda: not chat.session.runs.unfinished().exists())
    if (await chat.reload()).queue_paused:
        await in_thread(messages.resume_queue, chat.session)
    await until(lambda: at_rest(chat.session))
    children = Run.objects.filter(session__parent_session=chat.session)
    await until(lambda: not children.unfinished().exists())


def at_rest(session: AgentSession) -> bool:
    is_busy = session.runs.unfinished().exists()
    return not is_busy and not session.messages.queued().exists()


def rows_are_whole(scene: Scene) -> None:
    """No half-written block, no call without its result, one branch, a true status."""
    for session in AgentSession.objects.exclude(pk=scene.source.pk):
        assert session.status == derive_status(session.pk)
        assert session.branches.count() == 1
        assert session.runs.unfinished().count() <= 1
        over = session.messages.filter(run__state=RunState.FINISHED)
        assert not over.filter(is_streaming=True).exists()
        calls, results = (
            sorted(over.filter(role=role).values_list("tool_use_id", flat=True))
            for role in (MessageRole.TOOL_CALL, MessageRole.TOOL_RESULT)
        )
        assert calls == results
    typed = scene.chat.session.messages.filter(role=MessageRole.USER, hidden=False)
    assert list(typed.values_list("text", flat=True).order_by("seq"))[1:] == QUEUED


def everything_was_answered(scene: Scene) -> None:
    session = scene.chat.session
    rows = load_transcript(session, scene.chat.user, limit=1000).items
    answers = [
        item.message.text for item in rows if item.message.role == MessageRole.ASSISTANT
    ]
    assert answers[-2:] == ["second", "third"]
    last = session.runs.order_by("created_at").last()
    assert last is not None
    assert last.success, last.error_text
    assert session.approvals.filter(status=ApprovalStatus.PENDING).count() == 0
    ran = session.messages.filter(
        role=MessageRole.TOOL_RESULT, tool_name="Bash", outcome=ToolOutcome.OK
    )
    assert ran.count() <= 1
    assert Run.objects.filter(session=session, kind="prompt").count() <= 4


async def everything_was_heard_once(scene: Scene, demo: DemoServer) -> None:
    """The last request holds all prompts, each once, in their order."""
    last = (await scene.chat.requests(demo))[-1]
    heard = "\n\n".join(
        each.prompt for each in read_conversation(last.body or {}).exchanges
    )
    typed = await in_thread(
        lambda: list(
            scene.chat.session.messages.filter(role=MessageRole.USER)
            .order_by("seq")
            .values_list("text", flat=True)
        )
    )
    places = [heard.index(text) for text in typed]
    assert places == sorted(places)
    assert [heard.count(text) for text in typed] == [1] * len(typed)
