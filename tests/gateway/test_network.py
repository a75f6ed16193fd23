from __future__ import annotations

import socket
from typing import Any

import httpcore2
import httpx2
import pytest

from agents.gateway.network import BlockedAddressError, PublicOnlyBackend, make_client


def answers(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Let every name resolve to these; returns the list of what is connected to."""
    connected: list[str] = []

    def resolve(host: str, port: int, *args: Any, **kwargs: Any) -> list[Any]:
        if host in addresses:
            connected.append(host)
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (address, port),
            )
            for address in ([host] if host in addresses else addresses)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return connected


async def test_a_name_that_leads_home_is_not_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        connected = answers(monkeypatch, "93.184.215.14", "127.0.0.1")

        with pytest.raises(BlockedAddressError):
            await PublicOnlyBackend().connect_tcp(
                "rebound.example", server.getsockname()[1], timeout=5
            )

        assert connected == []
        with pytest.raises(BlockingIOError):
            server.accept()


async def test_it_connects_to_what_it_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "agents.gateway.network.is_public_address", lambda address: True
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        answers(monkeypatch, "::ffff:0:1", "127.0.0.1")

        stream = await PublicOnlyBackend().connect_tcp(
            "name.example", server.getsockname()[1], timeout=5
        )

        peer, _ = server.accept()
        peer.close()
        await stream.aclose()


async def test_the_last_failure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "agents.gateway.network.is_public_address", lambda address: True
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    answers(monkeypatch, "127.0.0.1")

    with pytest.raises(httpcore2.ConnectError):
        await PublicOnlyBackend().connect_tcp("name.example", port, timeout=5)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (socket.gaierror(-2, "unknown"), httpx2.ConnectError),
        (UnicodeError("label too long"), httpx2.ConnectError),
        (TimeoutError(), httpx2.ConnectTimeout),
    ],
)
async def test_names_that_do_not_resolve(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: type[Exception]
) -> None:
    def resolve(*args: Any, **kwargs: Any) -> None:
        raise failure

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    async with make_client(allow_private=False, read_timeout_seconds=5) as client:
        with pytest.raises(kind):
            await client.get("http://name.example/")


async def test_clients_keep_no_cookies_and_use_no_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    from .upstream import ScriptedUpstream, whole

    async with (
        ScriptedUpstream(whole({}, set_cookie="a=b; Path=/")) as up,
        make_client(allow_private=True, read_timeout_seconds=5) as client,
    ):
        await client.get(up.url)
        await client.get(up.url)

    assert len(up.requests) == 2
    assert "cookie" not in up.requests[1].headers
