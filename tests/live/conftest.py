"""Sockets on the real URL router."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.db import connections

from agents.live.routing import websocket_urlpatterns
from agents.models import User
from tests.dom import Node, apply_frame, parse

T = TypeVar("T")
PATIENCE_SECONDS = 10


async def in_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    return await sync_to_async(function)(*args, **kwargs)


class Browser:
    """A page that is open on a socket, kept up to date as htmx would."""

    def __init__(self, path: str, user: User) -> None:
        routes: Any = websocket_urlpatterns
        communicator: Any = WebsocketCommunicator(URLRouter(routes), path)
        self.socket = communicator
        self.scope = communicator.scope
        self.scope["user"] = user  # as AuthMiddleware would
        self.dom = Node("#root")

    async def open(self) -> None:
        """Connect and take the snapshot as the page."""
        connected, _ = await self.socket.connect()
        assert connected
        self.dom = parse(await self._receive())
        for node in self.dom.walk():
            node.attributes.pop("hx-swap-oob", None)

    async def take_up(self, dom: Node) -> str:
        """Connect with a page that is there. Returns: the first frame."""
        self.dom = dom
        connected, _ = await self.socket.connect()
        assert connected
        return await self.frame()

    async def close_code(self) -> int:
        """Connect where that is not allowed. Returns: how the socket was closed."""
        await self.socket.connect()
        message = await self.socket.receive_output(PATIENCE_SECONDS)
        assert message["type"] == "websocket.close"
        code: int = message["code"]
        return code

    async def frame(self) -> str:
        html = await self._receive()
        apply_frame(self.dom, html)
        return html

    async def _receive(self) -> str:
        return str(await self.socket.receive_from(PATIENCE_SECONDS))

    async def until(self, condition: Callable[[Node], Any]) -> None:
        """Take frames until the page is as wanted."""
        while not condition(self.dom):
            await self.frame()

    async def hears_nothing(self) -> bool:
        return bool(await self.socket.receive_nothing(timeout=0.2))

    async def closed_with(self) -> int:
        """Take frames until the server closes. Returns: the code."""
        while True:
            message = await self.socket.receive_output(PATIENCE_SECONDS)
            if message["type"] == "websocket.close":
                code: int = message["code"]
                return code
            apply_frame(self.dom, message["text"])


OpenPage = Callable[[str, User], Awaitable[Browser]]


@pytest.fixture
async def open_page() -> AsyncIterator[OpenPage]:
    """Open pages; their sockets are closed when the test ends."""
    opened: list[Browser] = []

    async def open_page(path: str, user: User) -> Browser:
        browser = Browser(path, user)
        opened.append(browser)
        await browser.open()
        return browser

    yield open_page

    for browser in opened:
        await browser.socket.disconnect()
    await asyncio.sleep(0)
    await in_thread(connections.close_all)
