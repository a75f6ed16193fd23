from __future__ import annotations

import httpx2
import pytest

from agents.gateway.headers import incoming_headers, outgoing_headers

from .caller import REAL_KEY, upstream

SUBSCRIPTION = "sk-ant-oat01-xyz"


def sent(headers: dict[str, str] | None = None, **changes: object) -> dict[str, str]:
    pairs = list((headers or {}).items())
    return dict(outgoing_headers(pairs, upstream("http://x", **changes)))


def test_anthropic_gets_the_key_in_its_own_header() -> None:
    assert sent() == {"x-api-key": REAL_KEY, "accept-encoding": "identity"}


def test_a_gateway_gets_the_key_in_both_headers() -> None:
    assert sent(kind="gateway") == {
        "x-api-key": REAL_KEY,
        "authorization": f"Bearer {REAL_KEY}",
        "accept-encoding": "identity",
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, "oauth-2025-04-20"), ({"anthropic-beta": "a,b"}, "a,b,oauth-2025-04-20")],
)
def test_a_subscription_token_is_a_bearer_token(
    before: dict[str, str], after: str
) -> None:
    assert sent(before, api_key=SUBSCRIPTION) == {
        "anthropic-beta": after,
        "authorization": f"Bearer {SUBSCRIPTION}",
        "accept-encoding": "identity",
    }


def test_a_token_of_a_subscription_needs_no_known_beginning_and_no_other_beta() -> None:
    changes = {"kind": "subscription", "api_key": "token", "bare": True}

    assert sent({"anthropic-beta": "a"}, **changes) == {
        "anthropic-beta": "oauth-2025-04-20",
        "authorization": "Bearer token",
        "accept-encoding": "identity",
    }


def test_without_a_key_none_is_made_up() -> None:
    assert sent(kind="demo", api_key="") == {"accept-encoding": "identity"}


def test_only_what_concerns_the_provider_is_sent_on() -> None:
    headers = {
        "authorization": "Bearer our-token",
        "x-api-key": "our-token",
        "cookie": "a=b",
        "host": "localhost",
        "content-length": "3",
        "accept-encoding": "gzip",
        "connection": "keep-alive",
        "transfer-encoding": "chunked",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "b",
        "x-claude-code-session-id": "s",
    }

    assert sent(headers, api_key="") == {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "b",
        "x-claude-code-session-id": "s",
        "accept-encoding": "identity",
    }


def test_a_bare_upstream_gets_no_beta_flags() -> None:
    assert "anthropic-beta" not in sent({"anthropic-beta": "b"}, bare=True)


def test_answers_keep_what_the_cli_may_need() -> None:
    headers = {
        "request-id": "r",
        "retry-after": "3",
        "anthropic-ratelimit-tokens-remaining": "9",
        "content-type": "application/json",
        "content-length": "0",
        "content-encoding": "identity",
        "set-cookie": "a=b",
        "connection": "close",
        "date": "today",
    }

    assert incoming_headers(httpx2.Response(200, headers=headers)) == [
        ("request-id", "r"),
        ("retry-after", "3"),
        ("anthropic-ratelimit-tokens-remaining", "9"),
        ("content-type", "application/json"),
    ]
