"""Each way a turn can fail: its class, its card, and "Try again"."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import claude_agent_sdk
import pytest

from agents.demo.server import DemoServer
from agents.execution.engine import Engine
from agents.execution.processes import find_marked
from agents.models import Run, User
from agents.models.runs import RunState, StopReason
from agents.models.sessions import SessionStatus

from .conftest import Chat, in_thread, until

pytestmark = pytest.mark.cli

Override = Callable[..., None]
StartEngine = Callable[[], Awaitable[Engine]]


async def assert_failed(chat: Chat, run: Run, error_class: str, *, says: str) -> None:
    """The run is over, one card says why, nothing spins, no process is left."""
    assert (run.state, run.stop_reason) == (RunState.FINISHED, StopReason.ERROR)
    assert run.error_class == error_class
    errors = [text for kind, text in await chat.notices() if kind == "error"]
    assert errors == [run.error_text]
    assert says in run.error_text
    assert (await chat.reload()).status == SessionStatus.ERROR
    assert not any(row.is_streaming for row in await chat.rows())
    assert find_marked(chat.session.pk) == []


@pytest.mark.parametrize(
    ("script", "error_class", "says", "calls"),
    [
        ("error 403 times 1", "auth", "refuses the key", 1),
        ("error 404 times 2", "model_not_found", "does not know this model", 2),
        ("error 400 times 9 message too odd", "bad_request", "too odd", None),
        ("error 429 times 2", "rate_limit", "rate limit", 2),
        ("error 529 times 2", "overloaded", "overloaded", 2),
        ("error 500 times 2", "server_error", "error of its own", 2),
        ("error dropped times 2", "stream_cut", "broke off", 2),
        ("cut times 3", "stream_cut", "broke off", 3),
    ],
)
async def test_a_failed_call_ends_the_turn_and_can_be_tried_again(
    engine: Engine,
    alice: User,
    demo: DemoServer,
    override_conf: Override,
    script: str,
    error_class: str,
    says: str,
    calls: int | None,
) -> None:
    override_conf(cli_max_retries=1)
    chat = await Chat.launch(alice, "say: before")
    await chat.finished()
    prompt = f"demo: {script}\ndemo: say it went through"
    before = len(await chat.requests(demo))
    await chat.send(prompt)
    run = await chat.finished(2)

    await assert_failed(chat, run, error_class, says=says)
    if calls is not None:
        assert len(await chat.requests(demo)) - before == calls
    if script.startswith("error 400"):
        return  # the CLI sends those again as often as it likes

    await chat.retry()
    again = await chat.finished(3)

    assert again.success, again.error_text
    assert (await chat.rows())[-1].text == "it went through"
    assert await chat.prompts(demo) == ["say: before", prompt]
    assert (await chat.reload()).status == SessionStatus.COMPLETED


async def test_a_bad_key_ends_at_once_whatever_the_cli_would_retry(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "demo: error 401\ndemo: say never")
    run = await chat.finished()

    await assert_failed(chat, run, "auth", says="Settings")
    assert [kind for kind, _ in await chat.notices()] == ["error"]
    assert len(await chat.requests(demo)) == 1


async def test_a_retry_is_shown_and_then_told_as_past(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(
        alice, "demo: error 429 retry-after 1 times 1\ndemo: say through"
    )
    waiting = await chat.notice("retry")
    run = await chat.finished()

    assert "rate limit" in waiting.text
    assert "Trying again" in waiting.text
    assert run.success
    assert [kind for kind, _ in await chat.notices()] == ["info"]
    assert "Trying again" not in (await chat.notices())[0][1]


async def test_a_provider_that_is_away_can_be_tried_again(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(cli_max_retries=0)
    with demo.refusing():
        chat = await Chat.launch(alice, "say: hello again")
        run = await chat.finished()
        await assert_failed(chat, run, "unreachable", says="refused the connection")

    await chat.retry()
    run = await chat.finished(2)

    assert run.success, run.error_text
    assert await chat.prompts(demo) == ["say: hello again"]


async def test_a_cut_stream_keeps_the_half_and_starts_again(
    engine: Engine, alice: User
) -> None:
    chat = await Chat.launch(alice, "demo: cut after 3 words times 1\ndemo: say whole")
    run = await chat.finished()

    assert run.success, run.error_text
    texts = [row.text for row in await chat.rows() if row.role == "assistant"]
    assert texts[-1].endswith("whole")
    assert not any(row.is_streaming for row in await chat.rows())


async def test_a_silent_model_is_told_and_then_goes_on(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(stalled_after_seconds=0.4)
    chat = await Chat.launch(alice, "demo: hold silence after 3 words")
    stalled = await chat.notice("stalled")
    demo.state.release("silence")
    run = await chat.finished()

    assert "sent nothing" in stalled.text
    assert run.success, run.error_text
    assert [kind for kind, _ in await chat.notices()] == ["info"]


async def test_a_killed_cli_is_a_failed_turn(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    prompt = "demo: hold killed after 3 words"
    chat = await Chat.launch(alice, prompt)
    partial = await chat.writing("cedar-3")
    for pid in find_marked(chat.session.pk):
        os.kill(pid, signal.SIGKILL)
    run = await chat.finished()

    await assert_failed(chat, run, "cli_died", says="ended unexpectedly")
    await in_thread(partial.refresh_from_db)
    assert partial.is_interrupted
    assert "cedar-3" in partial.text

    demo.state.release("killed")
    await chat.retry()
    again = await chat.finished(2)

    assert again.success, again.error_text
    assert await chat.prompts(demo) == [prompt]


async def test_a_retry_remembers_the_turns_that_were_stopped(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(cli_max_retries=0)
    chat = await Chat.launch(alice, "say: one")
    await chat.finished()
    await chat.send("demo: hold stopped-turn after 3 words")
    await chat.writing("cedar-3")
    await chat.stop()
    await chat.finished(2)
    failing = "demo: error 500 times 1\ndemo: say three"
    await chat.send(failing)
    assert (await chat.finished(3)).error_class == "server_error"
    await chat.retry()
    run = await chat.finished(4)

    assert run.success, run.error_text
    assert await chat.prompts(demo) == [
        "say: one",
        "demo: hold stopped-turn after 3 words",
        failing,
    ]


async def test_a_start_that_takes_too_long_is_given_up(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Override
) -> None:
    override_conf(connect_timeout_seconds=0.05)
    chat = await Chat.launch(alice, "say: late")
    run = await chat.finished()

    await assert_failed(chat, run, "start_timeout", says="did not start in time")

    override_conf(connect_timeout_seconds=60)
    await chat.retry()

    assert (await chat.finished(2)).success
    assert await chat.prompts(demo) == ["say: late"]


async def test_a_missing_cli_is_told(
    engine: Engine, alice: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(claude_agent_sdk, "__file__", str(tmp_path / "__init__.py"))
        chat = await Chat.launch(alice, "say: hello")
        run = await chat.finished()

    await assert_failed(chat, run, "cli_missing", says="Install the requirements")
    await chat.retry()
    assert (await chat.finished(2)).success


async def test_a_missing_folder_is_told(
    engine: Engine,
    alice: User,
    demo: DemoServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    chat = await Chat.launch(alice, "say: first")
    await chat.finished()
    shutil.rmtree(chat.session.cwd)
    await chat.send("say: second")
    run = await chat.finished(2)

    await assert_failed(chat, run, "folder_missing", says=chat.session.cwd)
    [logged] = [record for record in caplog.records if str(run.pk) in record.message]
    assert (logged.levelname, logged.exc_info) == ("WARNING", None)

    await in_thread(Path(chat.session.cwd).mkdir)
    await chat.retry()
    assert (await chat.finished(3)).success
    assert await chat.prompts(demo) == ["say: first", "say: second"]


async def test_without_the_jail_that_the_site_requires_nothing_starts(
    start_engine: StartEngine, alice: User, override_conf: Override
) -> None:
    override_conf(disable_jail=True, require_jail=True)
    await start_engine()
    chat = await Chat.launch(alice, "say: hello")
    run = await chat.finished()

    await assert_failed(chat, run, "jail_unavailable", says="switched off")


async def test_a_cli_that_died_between_turns_is_replaced_unseen(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    chat = await Chat.launch(alice, "say: first")
    await chat.finished()
    for pid in find_marked(chat.session.pk):
        os.kill(pid, signal.SIGKILL)
    await until(lambda: not find_marked(chat.session.pk))
    await chat.send("say: second")
    run = await chat.finished(2)

    assert run.success, run.error_text
    assert await chat.prompts(demo) == ["say: first", "say: second"]
