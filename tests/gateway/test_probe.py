from __future__ import annotations

import json
from typing import Any

import pytest

from agents.demo.server import DemoServer
from agents.gateway import probe
from agents.gateway.probe import ProbeResult

from .caller import REAL_KEY, upstream
from .upstream import ANSWER, ScriptedUpstream, whole

MODELS = {"data": [{"id": "a"}, {"id": "cc/claude-sonnet-5-5"}, {"name": "odd"}, 1]}
NOT_HERE = whole(b"<html>", status=404, content_type="text/html")
REFUSED = whole(
    {"type": "error", "error": {"type": "authentication_error", "message": "bad"}},
    status=401,
)


async def test_anthropic_lists_its_models_to_who_has_a_key(demo: DemoServer) -> None:
    demo.state.required_key = REAL_KEY

    result = await probe.test_provider(upstream(demo.url))

    assert result == ProbeResult(
        True,
        "The provider answers. It offers 3 models.",
        ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"],
    )
    assert [(r.method, r.path) for r in demo.state.requests] == [("GET", "/v1/models")]


@pytest.mark.parametrize("kind", ["anthropic", "gateway"])
async def test_a_bad_key_is_found_out(demo: DemoServer, kind: str) -> None:
    demo.state.required_key = "another"

    result = await probe.test_provider(upstream(demo.url, kind=kind))

    assert result == ProbeResult(
        False,
        "The provider refused the key (HTTP 401: invalid x-api-key). Check it in "
        "Settings, Providers.",
    )


async def test_a_list_for_everybody_does_not_prove_the_key() -> None:
    async with ScriptedUpstream(whole(MODELS), REFUSED) as up:
        result = await probe.test_provider(upstream(up.url, kind="gateway"))

    assert not result.ok
    assert "refused the key" in result.message
    assert [r.target for r in up.requests] == [
        "/v1/models?limit=1000",
        "/v1/messages/count_tokens",
    ]


@pytest.mark.parametrize(
    ("prefix", "asked"), [("cc/", "cc/claude-sonnet-5-5"), ("other/", "a")]
)
async def test_a_gateway_is_asked_for_a_model_it_offers(
    prefix: str, asked: str
) -> None:
    async with ScriptedUpstream(whole(MODELS), whole({"input_tokens": 1})) as up:
        result = await probe.test_provider(
            upstream(f"{up.url}/v1", kind="gateway", model_prefix=prefix)
        )

    assert (result.ok, result.models) == (True, ["a", "cc/claude-sonnet-5-5"])
    assert up.requests[1].json["model"] == asked
    assert up.requests[1].headers["authorization"] == f"Bearer {REAL_KEY}"


async def test_without_list_or_count_it_asks_for_one_token() -> None:
    async with ScriptedUpstream(NOT_HERE, NOT_HERE, whole(ANSWER)) as up:
        result = await probe.test_provider(upstream(up.url, model_prefix="cc/"))

    assert result == ProbeResult(True, "The provider answers.")
    assert json.loads(up.requests[2].body) == {
        "model": "cc/claude-sonnet-5-5",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 1,
    }


async def test_an_address_that_knows_none_of_it_is_told() -> None:
    async with ScriptedUpstream(NOT_HERE) as up:
        result = await probe.test_provider(upstream(up.url))

    assert not result.ok
    assert "HTTP 404" in result.message


@pytest.mark.parametrize("status", [200, 302])
async def test_a_web_site_is_no_provider(status: int) -> None:
    page = whole(b"<html>", status=status, content_type="text/html")
    async with ScriptedUpstream(page) as up:
        result = await probe.test_provider(upstream(up.url))

    assert not result.ok
    assert "not as a model provider" in result.message


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://name.invalid", "There is no host named name.invalid"),
        ("http://127.0.0.1:9", "refused the connection"),
        ("https://{upstream}", "doesn't speak HTTPS"),
        ("ftp://x", "base URL is not valid"),
        ("http://x:port", "base URL is not valid"),
    ],
)
async def test_unreachable_addresses_are_explained(url: str, words: str) -> None:
    async with ScriptedUpstream(NOT_HERE) as up:
        url = url.replace("{upstream}", up.url.removeprefix("http://"))
        result = await probe.test_provider(upstream(url))

    assert not result.ok
    assert words in result.message


async def test_members_cannot_probe_this_machine(demo: DemoServer) -> None:
    result = await probe.test_provider(upstream(demo.url, allow_private=False))

    assert "private address" in result.message
    assert demo.state.requests == []


async def test_a_silent_address_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "READ_TIMEOUT_SECONDS", 0.2)

    async def silent(received: Any, _: object) -> None:
        await received.gone.wait()

    async with ScriptedUpstream(silent) as up:
        result = await probe.test_provider(upstream(up.url))

    assert not result.ok
    assert "did not answer in time" in result.message


async def test_the_demo_model_needs_no_test() -> None:
    result = await probe.test_provider(upstream("", kind="demo"))

    assert result == ProbeResult(True, "The demo model is built in.")
