"""Connections to upstreams: one HTTP client for vouched addresses, one for the rest.

The second one resolves names itself and connects only to what it checked, so that a
name that changed its address since the form was saved (DNS rebinding) gets nowhere.
Proxy settings of the environment are ignored: a proxy would connect unchecked.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpcore2
import httpx2

from agents.conf import conf
from agents.domain.urls import is_public_address

from .lines import Upstream

WRITE_TIMEOUT_SECONDS = 60.0
KEEPALIVE_SECONDS = 30.0


class BlockedAddressError(httpcore2.ConnectError):
    """The name resolves to an address that this upstream may not have."""


class PublicOnlyBackend(httpcore2.AnyIOBackend):
    """Connects to public addresses only."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in await _public_addresses(host, port, timeout):
            try:
                return await super().connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure


async def _public_addresses(
    host: str, port: int, limit_seconds: float | None
) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(limit_seconds):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError as error:
        raise httpcore2.ConnectTimeout(f"resolving {host}") from error
    except (OSError, UnicodeError) as error:
        raise httpcore2.ConnectError(str(error)) from error
    # IPv4 first: a machine without an IPv6 route must not wait for that to fail.
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not all(is_public_address(address) for address in addresses):
        raise BlockedAddressError(host)
    return addresses


@cache
def _ssl_context() -> ssl.SSLContext:
    """One for all: reading the system's certificates takes a quarter of a second."""
    return httpx2.create_ssl_context(trust_env=False)


class _PublicOnlyTransport(httpx2.AsyncHTTPTransport):
    """httpx2 offers no way to pass a network backend, so its pool is replaced."""

    def __init__(self, limits: httpx2.Limits) -> None:
        super().__init__(verify=_ssl_context(), limits=limits)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_ssl_context(),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=PublicOnlyBackend(),
        )


def make_client(
    *, allow_private: bool, read_timeout_seconds: float
) -> httpx2.AsyncClient:
    """A client that keeps no cookies: its connections serve many people's keys."""
    limits = httpx2.Limits(
        max_connections=None,
        max_keepalive_connections=20,
        keepalive_expiry=KEEPALIVE_SECONDS,
    )
    connect = conf().gateway_connect_timeout_seconds
    return httpx2.AsyncClient(
        transport=(
            httpx2.AsyncHTTPTransport(verify=_ssl_context(), limits=limits)
            if allow_private
            else _PublicOnlyTransport(limits)
        ),
        timeout=httpx2.Timeout(
            connect=connect,
            read=read_timeout_seconds,
            write=WRITE_TIMEOUT_SECONDS,
            pool=connect,
        ),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=False,
        trust_env=False,
    )


class Clients:
    """The two clients of a gateway."""

    def __init__(self) -> None:
        read = conf().gateway_read_timeout_seconds
        self._any = make_client(allow_private=True, read_timeout_seconds=read)
        self._public = make_client(allow_private=False, read_timeout_seconds=read)

    def for_upstream(self, upstream: Upstream) -> httpx2.AsyncClient:
        may_be_private = upstream.allow_private or upstream.is_demo
        return self._any if may_be_private else self._public

    async def aclose(self) -> None:
        await self._any.aclose()
        await self._public.aclose()
