"""Programs with tokens of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from agents.domain.tokens import create_token
from agents.models import User
from agents.models.tokens import TokenScope


class Program:
    """Speaks JSON with one token."""

    def __init__(self, token: str) -> None:
        self.token = token
        self._client = Client()

    def get(self, path: str, **query: Any) -> Any:
        return self._client.get(f"/api{path}", query, headers=self._headers)

    def post(self, path: str, body: Any = None) -> Any:
        return self._client.post(
            f"/api{path}", body, content_type="application/json", headers=self._headers
        )

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


MakeProgram = Callable[..., Program]


def token_of(user: User, *scopes: str) -> str:
    return create_token(
        user, name="Test", scopes=scopes or TokenScope.values, days=None
    )


@pytest.fixture
def program() -> MakeProgram:
    """A program of somebody's, with these scopes or all."""

    def program(user: User, *scopes: str) -> Program:
        return Program(token_of(user, *scopes))

    return program
