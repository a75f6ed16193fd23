from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from agents.demo.server import DemoServer
from agents.errors import AgentsError
from agents.gateway.server import Gateway, _bind_unix, _is_alive

from .caller import Caller, request, upstream
from .upstream import ScriptedUpstream, delta, start, stream


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_the_unix_socket_is_for_this_user_only(
    gateway: Gateway, socket_folder: Path
) -> None:
    assert gateway.socket_path == socket_folder / f"{os.getpid()}.sock"
    assert stat.S_ISSOCK(gateway.socket_path.stat().st_mode)
    assert mode_of(gateway.socket_path) == 0o600
    assert mode_of(socket_folder) == 0o700


async def test_both_sockets_lead_to_the_same_lines(
    gateway: Gateway, caller: Caller, demo: DemoServer
) -> None:
    line = caller.open(upstream(demo.url))
    transport = httpx2.AsyncHTTPTransport(uds=str(gateway.socket_path))
    headers = {"x-api-key": line.token}

    async with httpx2.AsyncClient(transport=transport) as client:
        response = await client.post(
            "http://localhost/v1/messages", headers=headers, json=request()
        )

    assert response.status_code == 200
    assert (await caller.post()).status_code == 200


async def test_the_port_is_on_loopback(gateway: Gateway) -> None:
    host, _, port = gateway.base_url.removeprefix("http://").partition(":")

    assert (host, int(port) > 0) == ("127.0.0.1", True)


def signal_handlers() -> list[object]:
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


async def test_it_leaves_the_processs_signals_alone(socket_folder: Path) -> None:
    gateway = Gateway(folder=socket_folder)
    before = signal_handlers()

    await gateway.start()
    during = signal_handlers()
    await gateway.stop()

    assert during == before
    assert signal_handlers() == before


async def test_stopping_ends_calls_and_sockets(
    gateway: Gateway, caller: Caller
) -> None:
    never = asyncio.Event()
    async with ScriptedUpstream(stream(start(), delta("a"), never)) as up:
        line = caller.open(upstream(up.url))
        response = await caller.stream()
        port = int(gateway.base_url.rpartition(":")[2])

        async with asyncio.timeout(20):
            await gateway.stop()
            await up.requests[0].gone.wait()

        assert line.calls_in_flight == 0
        assert not gateway.socket_path.exists()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with pytest.raises(httpx2.RemoteProtocolError):
            await response.aread()
        await gateway.stop()


async def test_stopping_before_the_start_does_nothing(socket_folder: Path) -> None:
    gateway = Gateway(folder=socket_folder)

    await gateway.settle()
    await gateway.stop()

    assert gateway.base_url == ""


async def test_it_can_start_again(gateway: Gateway, demo: DemoServer) -> None:
    await gateway.stop()
    await gateway.start()

    async with Caller(gateway, uuid4()) as caller:
        caller.open(upstream(demo.url))
        response = await caller.post()

    assert response.status_code == 200


def test_it_removes_the_sockets_of_dead_processes(socket_folder: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    own, dead, alive = f"{os.getpid()}.sock", f"{ended.pid}.sock", "1.sock"
    socket_folder.mkdir()
    for name in (own, dead, alive, "odd.sock"):
        (socket_folder / name).touch()

    with _bind_unix(socket_folder / own):
        found = {path.name for path in socket_folder.iterdir()}

    assert found == {own, alive}


def test_processes_of_others_are_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)

    assert _is_alive("1")


async def test_too_long_a_path_is_said_so(tmp_path: Path) -> None:
    gateway = Gateway(folder=tmp_path / ("x" * 100))

    with pytest.raises(AgentsError, match="too long"):
        await gateway.start()
