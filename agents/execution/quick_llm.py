"""One question to a cheap model, beside the turns: bounded in time, words and money.

It goes through the gateway like an agent's calls, on a line of its own, so that the
key stays there and the cost is entered; but it belongs to no turn.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import anthropic
import httpx2

from agents.conf import conf
from agents.domain.budgets import refusal_of_call
from agents.domain.model_choice import cheap_model
from agents.domain.providers import provider_for
from agents.domain.usage import Usage, price_of
from agents.gateway.lines import Line, Upstream
from agents.gateway.server import Gateway
from agents.gateway.upstreams import upstream_of
from agents.models import AgentSession

from .database import in_database

CHARACTERS_PER_TOKEN = 2  # on the safe side: English has four
_FENCE = "```"


class QuickLlmError(Exception):
    """There is no answer: refused, too slow, too dear, or not what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    prompt: str
    system: str
    max_tokens: int
    schema: dict[str, Any] | None = None

    def worst_case(self) -> Usage:
        asked = len(self.prompt) + len(self.system)
        return Usage(
            input_tokens=asked // CHARACTERS_PER_TOKEN, output_tokens=self.max_tokens
        )


async def quick_llm_call(
    gateway: Gateway,
    session_id: UUID,
    prompt: str,
    *,
    system: str = "",
    max_tokens: int = 100,
) -> str:
    """What a cheap model of the session's provider answers.

    Raises: QuickLlmError.
    """
    question = _Question(prompt=prompt, system=system, max_tokens=max_tokens)
    return await _answer(gateway, session_id, question)


async def quick_llm_json(
    gateway: Gateway,
    session_id: UUID,
    prompt: str,
    *,
    schema: dict[str, Any],
    system: str = "",
    max_tokens: int = 400,
) -> dict[str, Any]:
    """The same for an object; the system prompt should ask for JSON in words, too.

    Not every upstream knows schemas, so the answer may lack what the schema requires.

    Raises: QuickLlmError.
    """
    question = _Question(
        prompt=prompt, system=system, max_tokens=max_tokens, schema=schema
    )
    return _as_object(await _answer(gateway, session_id, question))


async def _answer(gateway: Gateway, session_id: UUID, question: _Question) -> str:
    model, upstream = await in_database(_choose, session_id, question)
    line = gateway.open_line(session_id, upstream, is_side=True)
    try:
        async with asyncio.timeout(conf().side_call_seconds):
            return await _ask(gateway.base_url, line, model, question)
    except TimeoutError as error:
        raise QuickLlmError("no answer in time") from error
    except anthropic.APIError as error:
        raise QuickLlmError(f"{type(error).__name__}: {error.message}") from error
    finally:
        gateway.close_line(line)


def _choose(session_id: UUID, question: _Question) -> tuple[str, Upstream]:
    """The model and where it is; in the database's thread."""
    session = (
        AgentSession.objects.select_related("owner", "provider")
        .filter(pk=session_id)
        .first()
    )
    if session is None:
        raise QuickLlmError("the session is gone")
    if refusal := refusal_of_call(session_id, is_side=True):
        raise QuickLlmError(refusal)
    provider = provider_for(session)
    model = cheap_model(session, provider)
    price = price_of(model)
    limit = conf().side_call_max_usd_micros
    if price is not None and price.cost_usd_micros(question.worst_case()) > limit:
        raise QuickLlmError(f"a call of {model} could cost more than it may")
    return model, upstream_of(provider)


async def _ask(base_url: str, line: Line, model: str, question: _Question) -> str:
    # A credential that is given keeps those of the environment out.
    async with anthropic.AsyncAnthropic(
        base_url=base_url,
        auth_token=line.token,
        max_retries=1,
        http_client=httpx2.AsyncClient(trust_env=False),
    ) as client:
        try:
            return await _create(client, model, question, schema=question.schema)
        except anthropic.BadRequestError:
            if question.schema is None:
                raise
            # An upstream that knows no schemas; the prompt asks for JSON as well.
            return await _create(client, model, question, schema=None)


async def _create(
    client: anthropic.AsyncAnthropic,
    model: str,
    question: _Question,
    *,
    schema: dict[str, Any] | None,
) -> str:
    extra: dict[str, Any] = {}
    if question.system:
        extra["system"] = question.system
    if schema is not None:
        extra["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    answer = await client.messages.create(
        model=model,
        max_tokens=question.max_tokens,
        messages=[{"role": "user", "content": question.prompt}],
        **extra,
    )
    return "".join(block.text for block in answer.content if block.type == "text")


def _as_object(answer: str) -> dict[str, Any]:
    text = answer.strip()
    if text.startswith(_FENCE):
        text = text.removeprefix(_FENCE).removeprefix("json").removesuffix(_FENCE)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise QuickLlmError("the answer is not JSON") from error
    if not isinstance(value, dict):
        raise QuickLlmError("the answer is not an object")
    return value
