"""Secrets of the server, and its network, are out of an agent's reach."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from agents.demo.server import DemoServer
from agents.demo.state import DemoState
from agents.execution.engine import Engine
from agents.models import Message, Provider, SessionEvent, User
from agents.models.messages import ToolOutcome
from agents.models.providers import ProviderKind

from .conftest import Chat, in_thread
from .jail import needs_jail

pytestmark = pytest.mark.cli

Override = Callable[..., None]
StartEngine = Callable[[], Awaitable[Engine]]
KEY = "sk-canary-of-the-provider"
DATABASE_URL = "postgresql://canary-of-the-database"
READ_ALL = r"""
for file in /proc/[0-9]*/environ; do
    tr '\0' '\n' <$file
done 2>/dev/null; env
"""
CONNECT = (
    'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)'
)


def bash(command: str) -> str:
    return f"demo: tool Bash {json.dumps({'command': command})}"


@pytest.fixture
def keyed_demo() -> Iterator[DemoServer]:
    """A gateway that serves only who has the key."""
    with DemoServer(DemoState(required_key=KEY)) as server:
        yield server


def use_provider(owner: User, url: str) -> None:
    Provider.objects.create(
        owner=owner, name="Mine", kind=ProviderKind.GATEWAY, base_url=url, api_key=KEY
    )


@needs_jail
async def test_the_key_reaches_the_provider_and_nobody_else(
    engine: Engine,
    alice: User,
    keyed_demo: DemoServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("DATABASE_URL", DATABASE_URL)
    monkeypatch.setenv("SECRET_KEY", settings.SECRET_KEY)
    await in_thread(use_provider, alice, keyed_demo.url)
    chat = await Chat.launch(alice, bash(READ_ALL), security_mode="full")
    run = await chat.finished()
    (result,) = await chat.results()

    assert run.success, run.error_text
    calls = keyed_demo.state.model_calls
    assert calls
    assert {call.key for call in calls} == {KEY}
    # The probe really saw the environment of the process around it.
    assert "OPENSWARM_RUN=" in result.text
    secrets = [KEY, DATABASE_URL, settings.SECRET_KEY]
    stored = await in_thread(everything_stored)
    for secret in secrets:
        assert secret not in stored
        assert secret not in caplog.text
        for path in home_files(chat):
            assert secret.encode() not in path.read_bytes()
    # Outside the jail the same probe finds what was planted.
    outside = await in_thread(subprocess.run, ["/bin/bash", "-c", READ_ALL],
                              capture_output=True, text=True)  # fmt: skip
    assert DATABASE_URL in outside.stdout
    assert settings.SECRET_KEY in outside.stdout


def everything_stored() -> str:
    rows = [f"{m.text}{json.dumps(m.content)}" for m in Message.objects.all()]
    events = [json.dumps(event.data) for event in SessionEvent.objects.all()]
    return "\n".join(rows + events)


def home_files(chat: Chat) -> list[Path]:
    folder = Path(settings.DATA_DIR) / "cli" / str(chat.session.pk)
    return [path for path in folder.rglob("*") if path.is_file()]


@needs_jail
@pytest.mark.parametrize("network", ["none", "open"])
async def test_the_network_is_a_permission(
    engine: Engine, alice: User, network: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        reached = threading.Event()

        def accept() -> None:
            listener.accept()[0].close()
            reached.set()

        threading.Thread(target=accept, daemon=True).start()
        port = listener.getsockname()[1]
        chat = await Chat.launch(
            alice,
            bash(f"python3 -c '{CONNECT}' {port}"),
            security_mode="full",
            network=network,
        )
        run = await chat.finished()
        (result,) = await chat.results()

        assert run.success, run.error_text
        outcome = ToolOutcome.OK if network == "open" else ToolOutcome.ERROR
        assert result.outcome == outcome, result.text
        assert reached.is_set() == (network == "open")
        socket.create_connection(("127.0.0.1", port)).close()  # frees the thread


async def test_without_the_jail_commands_ask_and_files_stay_confined(
    start_engine: StartEngine, alice: User, override_conf: Override, tmp_path: Path
) -> None:
    override_conf(disable_jail=True)
    await start_engine()
    secret = tmp_path / "secret.txt"
    secret.write_text("secret words")
    canary = f"CANARY_{os.getpid()}"
    os.environ[canary] = "canary-of-the-server"
    try:
        chat = await Chat.launch(
            alice,
            f'demo: tool Read {{"file_path": "{secret}"}}\n'
            'demo: tool Write {"file_path": "$CWD/in.txt", "content": "in"}\n'
            + bash("env; cat in.txt"),
            security_mode="full",
        )
        approval = await chat.pending()
        assert approval.tool_name == "Bash"
        assert "no jail" in approval.reason
        await chat.decide(is_approved=True)
        run = await chat.finished()
    finally:
        del os.environ[canary]
    results = await chat.results()

    assert run.success, run.error_text
    assert run.jailed is False
    assert [row.outcome == ToolOutcome.OK for row in results] == [False, True, True]
    assert "secret words" not in results[0].text
    assert results[2].text.endswith("in")
    assert "canary-of-the-server" not in results[2].text
