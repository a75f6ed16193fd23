"""Which headers cross the gateway, and which key goes upstream.

The line's token never leaves; the real key is added here and nowhere else. Answers are
asked for uncompressed, because the gateway reads them.

The key travels as `x-api-key`. Gateways get it as a bearer token too: some read only
one of the two. A subscription token (`sk-ant-oat...`) is a bearer token, and the API
takes it only with its beta flag.
"""

from __future__ import annotations

from collections.abc import Iterable

import httpx2

from agents.models.providers import ProviderKind

from .lines import Upstream

Headers = list[tuple[str, str]]

BETA = "anthropic-beta"
SUBSCRIPTION_TOKEN = "sk-ant-oat"  # noqa: S105  its beginning, not a token
SUBSCRIPTION_BETA = "oauth-2025-04-20"

_HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
_OURS_TO_SET = {"host", "content-length", "accept-encoding", "expect"}
_SECRETS = {"authorization", "x-api-key", "cookie"}
# The body that leaves is neither as long nor encoded as the one that came.
_NOT_DOWNSTREAM = {"content-length", "content-encoding", "set-cookie", "date"}


def outgoing_headers(headers: Iterable[tuple[str, str]], upstream: Upstream) -> Headers:
    """The CLI's headers for the provider: without ours, with its key."""
    dropped = _HOP_BY_HOP | _OURS_TO_SET | _SECRETS
    if upstream.bare:
        dropped = dropped | {BETA}
    kept = [(name, value) for name, value in headers if name not in dropped]
    return [*with_key(kept, upstream), ("accept-encoding", "identity")]


def with_key(headers: Headers, upstream: Upstream) -> Headers:
    key = upstream.api_key
    if not key:
        return headers
    bearer = ("authorization", f"Bearer {key}")
    if upstream.kind == ProviderKind.GATEWAY:
        return [*headers, ("x-api-key", key), bearer]
    is_subscription = upstream.kind == ProviderKind.SUBSCRIPTION
    if is_subscription or key.startswith(SUBSCRIPTION_TOKEN):
        return [*_with_beta(headers, SUBSCRIPTION_BETA), bearer]
    return [*headers, ("x-api-key", key)]


def incoming_headers(response: httpx2.Response) -> Headers:
    """The provider's headers for the CLI."""
    dropped = _HOP_BY_HOP | _NOT_DOWNSTREAM
    return [
        (name, value)
        for name, value in response.headers.multi_items()
        if name not in dropped
    ]


def _with_beta(headers: Headers, flag: str) -> Headers:
    flags = [value for name, value in headers if name == BETA]
    others = [(name, value) for name, value in headers if name != BETA]
    return [*others, (BETA, ",".join([*flags, flag]))]
