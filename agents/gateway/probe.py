"""The "Test" button of a provider: does the address answer, and does the key work?"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import httpx2

from agents.conf import conf
from agents.models.providers import ProviderKind

from .call import join_url
from .exchange import COUNT_PATH, MESSAGES_PATH
from .headers import outgoing_headers
from .lines import Upstream
from .network import make_client
from .sentences import explain_failure, host_of, said_by, trouble_from_status

READ_TIMEOUT_SECONDS = 20.0
MODELS_PATH = "/v1/models"
_ALL = "limit=1000"  # without it the API lists twenty
_HEADERS = [
    ("anthropic-version", "2023-06-01"),
    ("content-type", "application/json"),
]
# Ways to say "that isn't offered here", as against refusing the caller.
_NOT_OFFERED = {400, 404, 405, 410, 422, 501}


@dataclass(frozen=True, slots=True)
class ProbeResult:
    ok: bool
    message: str
    models: list[str] = field(default_factory=list)


async def test_provider(upstream: Upstream) -> ProbeResult:
    """Ask for the models, then, where that proves nothing, for the smallest answer.

    Some gateways list their models to everybody, so a list alone doesn't prove a key.
    """
    if upstream.is_demo and not upstream.base_url:
        return ProbeResult(ok=True, message="The demo model is built in.")
    limit = conf().provider_test_seconds
    try:
        async with asyncio.timeout(limit), _client(upstream) as client:
            return await _probe(client, upstream)
    except TimeoutError:
        slow = f"{host_of(upstream.base_url)} did not answer within {limit:g} seconds."
        return ProbeResult(False, slow)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return ProbeResult(False, explain_failure(error, upstream.base_url))


async def _probe(client: httpx2.AsyncClient, upstream: Upstream) -> ProbeResult:
    response = await client.get(
        join_url(upstream.base_url, MODELS_PATH, _ALL), headers=_headers(upstream)
    )
    models = _model_names(response)
    if models and upstream.kind in (ProviderKind.ANTHROPIC, ProviderKind.SUBSCRIPTION):
        return _success(models)
    if response.status_code >= 400 and response.status_code not in _NOT_OFFERED:
        return _failure(response)
    return await _probe_messages(client, upstream, models)


async def _probe_messages(
    client: httpx2.AsyncClient, upstream: Upstream, models: list[str]
) -> ProbeResult:
    response = await _post(client, upstream, COUNT_PATH, models)
    if response.status_code in _NOT_OFFERED:
        response = await _post(client, upstream, MESSAGES_PATH, models)
    if response.status_code == 200 and _is_json(response):
        return _success(models)
    if response.status_code >= 400:
        return _failure(response)
    sentence = (
        f"{host_of(upstream.base_url)} answers, but not as a model provider does."
    )
    return ProbeResult(False, f"{sentence} Check the base URL.")


async def _post(
    client: httpx2.AsyncClient, upstream: Upstream, path: str, models: list[str]
) -> httpx2.Response:
    body: dict[str, Any] = {
        "model": _model_to_ask(upstream, models),
        "messages": [{"role": "user", "content": "Hi"}],
    }
    if path == MESSAGES_PATH:
        body["max_tokens"] = 1
    return await client.post(
        join_url(upstream.base_url, path),
        headers=_headers(upstream),
        content=json.dumps(body).encode(),
    )


def _model_to_ask(upstream: Upstream, models: list[str]) -> str:
    """The site's own model where it is offered (or nothing is known), else any."""
    usual = upstream.model_prefix + conf().default_model
    return usual if usual in models or not models else models[0]


def _success(models: list[str]) -> ProbeResult:
    offered = f" It offers {len(models)} models." if models else ""
    return ProbeResult(True, f"The provider answers.{offered}", models)


def _failure(response: httpx2.Response) -> ProbeResult:
    trouble = trouble_from_status(
        response.status_code, said_by(response.content), retry_after=None
    )
    return ProbeResult(False, trouble.message)


def _headers(upstream: Upstream) -> list[tuple[str, str]]:
    return outgoing_headers(_HEADERS, upstream)


def _model_names(response: httpx2.Response) -> list[str]:
    if response.status_code != 200 or not _is_json(response):
        return []
    content = response.json()
    rows = content.get("data") if isinstance(content, dict) else None
    names = [row.get("id") for row in rows or [] if isinstance(row, dict)]
    return [name for name in names if isinstance(name, str)]


def _is_json(response: httpx2.Response) -> bool:
    try:
        response.json()
    except ValueError:
        return False
    return True


def _client(upstream: Upstream) -> httpx2.AsyncClient:
    return make_client(
        allow_private=upstream.allow_private or upstream.is_demo,
        read_timeout_seconds=READ_TIMEOUT_SECONDS,
    )
