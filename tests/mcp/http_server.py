"""A small MCP server over HTTP, in a thread of the test's process."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse

PATIENCE_SECONDS = 20


@dataclass
class Site:
    """What the server was asked, and how it answers from now on."""

    url: str = ""
    token: str = ""
    """Callers have to bring it, unless it is empty."""
    status: int = 0
    """Answer everything with it, unless it is 0."""
    padding: int = 0
    """By how much answers are longer than they need be."""
    said: list[str] = field(default_factory=list)


def make_server(site: Site) -> MCPServer:
    server = MCPServer("far", log_level="CRITICAL")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def look(what: str) -> str:
        """Look something up."""
        site.said.append(what)
        return f"{what} is fine" + "!" * site.padding

    @server.tool()
    def change(what: str) -> str:
        """Change something."""
        site.said.append(what)
        return f"{what} is changed"

    return server


class Guarded:
    """Lets in who brings the token."""

    def __init__(self, app: Starlette, site: Site) -> None:
        self.app = app
        self.site = site

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        site = self.site
        if scope["type"] == "http":
            sent = dict(scope["headers"]).get(b"authorization", b"").decode()
            refusal = 401 if site.token and sent != f"Bearer {site.token}" else 0
            if status := site.status or refusal:
                await PlainTextResponse("no", status)(scope, receive, send)
                return
        await self.app(scope, receive, send)


@contextlib.contextmanager
def serve(app: Any, listener: socket.socket) -> Iterator[None]:
    """Serve on a socket that is bound; ends with the block."""
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def listen(port: int = 0) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener


@contextlib.contextmanager
def far_server(
    site: Site | None = None,
    *,
    is_sse: bool = False,
    is_json: bool = False,
    port: int = 0,
) -> Iterator[Site]:
    site = site or Site()
    listener = listen(port)
    port = listener.getsockname()[1]
    site.url = f"http://127.0.0.1:{port}/{'sse' if is_sse else 'mcp'}"
    server = make_server(site)
    app = (
        server.sse_app()
        if is_sse
        else server.streamable_http_app(json_response=is_json)
    )
    with serve(Guarded(app, site), listener):
        yield site
