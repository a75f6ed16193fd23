"""A provider's answer on its way back to the CLI: read, counted and passed on."""

from __future__ import annotations

import json
from typing import Any

import httpx2

from agents.conf import conf

from .answers import DO_NOT_RETRY, error_body
from .bodies import without_prefix
from .events import Event, EventSplitter, encode
from .exchange import Exchange
from .headers import Headers, incoming_headers
from .ledger import Meter
from .lines import Trouble
from .relay import Relay
from .sentences import (
    host_of,
    retry_after_seconds,
    said_by,
    trouble_from_event,
    trouble_from_status,
)

MAX_ERROR_BYTES = 64 * 1024


class Reply:
    """`pass_on` sends the answer; `record` may be called at any time, and again."""

    def __init__(self, exchange: Exchange, response: httpx2.Response) -> None:
        self._exchange = exchange
        self._response = response
        self._meter = Meter()
        self._is_recorded = False

    async def pass_on(self) -> None:
        """Send the answer on.

        Raises: httpx2.HTTPError: the provider's connection failed on the way.
        """
        status = self._response.status_code
        content_type = self._response.headers.get("content-type", "")
        if status >= 400:
            await self._pass_on_refusal()
        elif status >= 300:
            await self._refuse_redirect()
        elif content_type.startswith("text/event-stream"):
            await self._pass_on_stream()
        elif "json" in content_type:
            await self._pass_on_whole()
        else:
            await self._refuse_page()

    def record(self) -> None:
        """Enter the answer, once, with what is known of it by now."""
        if self._is_recorded or not self._meter.has_begun:
            return
        self._is_recorded = True
        self._enter()

    def _enter(self) -> None:
        exchange = self._exchange
        exchange.services.books.record(
            exchange.line, self._meter, agent_id=exchange.asked.agent_id
        )

    async def _pass_on_stream(self) -> None:
        exchange, answer = self._exchange, self._exchange.answer
        await answer.start(200, incoming_headers(self._response))
        splitter = EventSplitter()
        join_seconds = conf().gateway_join_ms / 1000
        async with Relay(answer.write, join_seconds=join_seconds) as relay:
            try:
                async for chunk in self._response.aiter_bytes():
                    exchange.line.touch()
                    await relay.push([self._read(e) for e in splitter.feed(chunk)])
            except httpx2.HTTPError:
                await relay.finish()
                raise
            await relay.finish(splitter.rest())
        if not self._meter.is_over:
            host = host_of(exchange.base_url)
            sentence = f"{host} ended its answer too early. Trying again."
            exchange.report(Trouble("cut", None, sentence))
        await answer.end()

    def _read(self, event: Event) -> Event:
        """Read an event; it stays as it is unless the model's name has to change."""
        self._meter.observe(event.data)
        match event.type:
            case "message_start":
                event = self._with_plain_model(event)
                if self._meter.message_id:  # by which its end will find it again
                    self._enter()
            case "message_stop":
                # Before the CLI hears of it: the cost should stand when the run ends.
                self.record()
            case "error":
                self._exchange.report(trouble_from_event(event.data.get("error")))
        return event

    def _with_plain_model(self, event: Event) -> Event:
        if not self._rename_model():
            return event
        message = {**event.data["message"], "model": self._meter.model}
        data = {**event.data, "message": message}
        return Event(encode(data), data)

    async def _pass_on_whole(self) -> None:
        body = await self._response.aread()
        if not self._exchange.asked.is_count:
            body = self._read_whole(body)
        await self._exchange.answer.whole(200, incoming_headers(self._response), body)

    def _read_whole(self, body: bytes) -> bytes:
        try:
            message: Any = json.loads(body)
        except ValueError:
            return body
        self._meter.read_message(message)
        if not self._rename_model():
            return body
        message["model"] = self._meter.model
        return json.dumps(message).encode("ascii")

    def _rename_model(self) -> bool:
        """Take the provider's prefix off. Returns: whether there was one."""
        sent, line = self._meter.model, self._exchange.line
        self._meter.model = without_prefix(sent, line.upstream)
        if self._exchange.is_conversation and sent:
            line.model_actual = self._meter.model
        return self._meter.model != sent

    async def _pass_on_refusal(self) -> None:
        response, exchange = self._response, self._exchange
        body = await self._read_some()
        retry_after = retry_after_seconds(response.headers)
        trouble = trouble_from_status(response.status_code, said_by(body), retry_after)
        exchange.report(trouble)
        headers = incoming_headers(response)
        if trouble.is_hopeless:
            headers = _replaced(headers, DO_NOT_RETRY)
        if not _is_json_object(body):
            body = error_body(response.status_code, trouble.message)
            headers = _replaced(headers, ("content-type", "application/json"))
        await exchange.answer.whole(response.status_code, headers, body)

    async def _read_some(self) -> bytes:
        """The error's body, capped, without the key that some gateways quote."""
        body = bytearray()
        async for chunk in self._response.aiter_bytes():
            body += chunk
            if len(body) >= MAX_ERROR_BYTES:
                break
        key = self._exchange.line.upstream.api_key.encode()
        text = bytes(body[:MAX_ERROR_BYTES])
        return text.replace(key, b"***") if key else text

    async def _refuse_redirect(self) -> None:
        here = host_of(self._exchange.base_url)
        there = host_of(self._response.headers.get("location", ""))
        await self._refuse(
            f"{here} sends calls on to {there}. Put the final address into the "
            "provider's base URL."
        )

    async def _refuse_page(self) -> None:
        here = host_of(self._exchange.base_url)
        await self._refuse(
            f"{here} answered with something that is no model's answer. Check the "
            "provider's base URL."
        )

    async def _refuse(self, sentence: str) -> None:
        status = self._response.status_code
        trouble = Trouble("bad_request", status, sentence, is_hopeless=True)
        await self._exchange.give_up(trouble)


def _replaced(headers: Headers, header: tuple[str, str]) -> Headers:
    return [*(pair for pair in headers if pair[0] != header[0]), header]


def _is_json_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False
