"""One call on its way to the provider; `reply` is the way back."""

from __future__ import annotations

import logging

import httpx2

from agents.domain.model_choice import is_allowed

from .answers import DO_NOT_RETRY
from .bodies import model_of, outgoing_body, with_temperature, without_prefix
from .exchange import Exchange
from .headers import outgoing_headers
from .lines import Trouble
from .reply import Reply
from .sentences import explain_failure, trouble_from_failure, waiting_trouble

logger = logging.getLogger(__name__)


async def run_call(exchange: Exchange) -> None:
    """Forward a call; every failure ends in an answer or a cut connection."""
    try:
        await _forward(exchange)
    except Exception:
        logger.exception("session %s: a model call failed", exchange.line.session_id)
        await exchange.fail(500, "The model gateway failed. The server's log says why.")


async def _forward(exchange: Exchange) -> None:
    line, base_url = exchange.line, exchange.base_url
    line.touch()
    model = without_prefix(model_of(exchange.asked.body), line.upstream)
    if not is_allowed(model, line.upstream.allowed_models):
        # An agent may name models for its sub-agents, and none that its owner may not.
        await exchange.fail(403, f"“{model}” may not be used here.", [DO_NOT_RETRY])
        return
    if exchange.is_conversation:
        exchange.services.books.keep(line.session_id, exchange.asked.body)
    await _wait_for_turn(exchange)
    if not exchange.asked.is_count:
        refusal = await exchange.services.books.refusal(line)
        if refusal:
            await exchange.give_up(Trouble("budget", 402, refusal, is_hopeless=True))
            return
    try:
        response = await _send(exchange)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        await exchange.give_up(trouble_from_failure(error, base_url))
        return
    line.touch()
    reply = Reply(exchange, response)
    try:
        await reply.pass_on()
    except httpx2.HTTPError as error:
        message = explain_failure(error, base_url)
        await exchange.give_up(Trouble("cut", None, message))
    finally:
        reply.record()
        await response.aclose()


async def _wait_for_turn(exchange: Exchange) -> None:
    """Hold the call while its key would only be refused."""
    upstream, backoff = exchange.line.upstream, exchange.services.backoff
    seconds = backoff.remaining_seconds(upstream)
    if seconds and not exchange.asked.is_count:
        exchange.line.report(waiting_trouble(seconds))
        await backoff.wait(upstream)
        exchange.line.touch()


async def _send(exchange: Exchange) -> httpx2.Response:
    upstream, asked = exchange.line.upstream, exchange.asked
    client = exchange.services.clients.for_upstream(upstream)
    # A bare upstream knows no beta either; the query is where the CLI asks for it.
    query = "" if upstream.bare else asked.query
    # Counting knows no temperature.
    temperature = None if asked.is_count else upstream.temperature
    body = with_temperature(asked.body, temperature)
    request = client.build_request(
        "POST",
        join_url(exchange.base_url, asked.path, query),
        headers=outgoing_headers(asked.headers, upstream),
        content=outgoing_body(body, upstream),
    )
    return await client.send(request, stream=True)


def join_url(base_url: str, path: str, query: str = "") -> str:
    """People give base URLs with and without the API's own `/v1`."""
    base = base_url.rstrip("/").removesuffix("/v1")
    return f"{base}{path}?{query}" if query else f"{base}{path}"
