"""Calls the gateway as the CLI does."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import httpx2

from agents.gateway.lines import Line, Trouble, Upstream
from agents.gateway.server import Gateway

REAL_KEY = "sk-real-key-of-the-owner"


def upstream(url: str, **changes: Any) -> Upstream:
    values: dict[str, Any] = {
        "provider_id": None,
        "kind": "anthropic",
        "base_url": url,
        "api_key": REAL_KEY,
        "allow_private": True,
    }
    return Upstream(**(values | changes))


def request(prompt: str = "hello", **changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": "claude-opus-5-5",
        "max_tokens": 100,
        "stream": True,
        "messages": [{"role": "user", "content": prompt}],
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
    }
    return {key: part for key, part in (body | changes).items() if part is not None}


class Caller:
    """One line after the other to the gateway's port, with all troubles it told of."""

    def __init__(self, gateway: Gateway, session_id: UUID) -> None:
        self.gateway = gateway
        self.session_id = session_id
        self.troubles: list[Trouble] = []
        self.trouble_came = asyncio.Event()
        self.line: Line

    async def __aenter__(self) -> Caller:
        self.http = httpx2.AsyncClient(
            base_url=self.gateway.base_url, timeout=30, trust_env=False
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.http.aclose()

    def open(self, to: Upstream) -> Line:
        self.line = self.gateway.open_line(self.session_id, to, self._note)
        return self.line

    def _note(self, trouble: Trouble) -> None:
        self.troubles.append(trouble)
        self.trouble_came.set()

    async def post(
        self,
        body: dict[str, Any] | bytes | None = None,
        path: str = "/v1/messages",
        **headers: str,
    ) -> httpx2.Response:
        return await self.http.send(self.build(body, path, **headers))

    async def stream(self, body: dict[str, Any] | None = None) -> httpx2.Response:
        """Returns: once the head of the answer is there; to be closed by the test."""
        return await self.http.send(self.build(body), stream=True)

    def build(
        self,
        body: dict[str, Any] | bytes | None = None,
        path: str = "/v1/messages",
        **headers: str,
    ) -> httpx2.Request:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else None
        return self.http.build_request(
            "POST",
            path,
            headers={"authorization": f"Bearer {self.line.token}", **names},
            content=content,
            json=None if content is not None else body or request(),
        )
