"""Upstream trouble as sentences for a person: what happened, and what to do."""

from __future__ import annotations

import json
import socket
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx2

from .lines import Trouble, TroubleKind
from .network import BlockedAddressError

_BY_STATUS: dict[int, TroubleKind] = {
    401: "auth",
    403: "auth",
    429: "rate_limit",
    529: "overloaded",
}
_BY_ERROR_TYPE: dict[str, TroubleKind] = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "rate_limit_error": "rate_limit",
    "overloaded_error": "overloaded",
    "invalid_request_error": "bad_request",
}
# No later try can succeed: the key, the account or the address must change first.
_HOPELESS = {401, 402, 403}
_NO_URL = (httpx2.InvalidURL, httpx2.UnsupportedProtocol)

_ADVICE: dict[TroubleKind, str] = {
    "auth": "The provider refused the key ({said}). Check it in Settings, Providers.",
    "rate_limit": "The provider's rate limit is reached ({said}). Trying again later.",
    "overloaded": "The provider is overloaded ({said}). Trying again.",
    "server_error": "The provider has a problem ({said}). Trying again.",
    "bad_request": "The provider refused the request ({said}).",
}


def trouble_from_status(status: int, said: str, retry_after: float | None) -> Trouble:
    """The trouble that an HTTP status of 400 or more means."""
    fallback: TroubleKind = "server_error" if status >= 500 else "bad_request"
    kind = _BY_STATUS.get(status, fallback)
    return Trouble(
        kind=kind,
        status=status,
        message=_ADVICE[kind].format(said=f"HTTP {status}: {said}"),
        retry_after_seconds=retry_after,
        is_hopeless=status in _HOPELESS,
    )


def waiting_trouble(seconds: float) -> Trouble:
    """The trouble of a call held back because another one was refused."""
    sentence = "The provider's rate limit is reached, for other agents too. Waiting."
    return Trouble("rate_limit", 429, sentence, retry_after_seconds=seconds)


def trouble_from_event(error: object) -> Trouble:
    """The trouble that an error event in the middle of a stream tells of."""
    details = error if isinstance(error, dict) else {}
    kind = _BY_ERROR_TYPE.get(str(details.get("type")), "server_error")
    said = str(details.get("message") or details.get("type") or "no reason given")
    message = _ADVICE[kind].format(said=said)
    return Trouble(kind, None, message, is_hopeless=kind == "auth")


def trouble_from_failure(error: Exception, url: str) -> Trouble:
    """The trouble of a call that got no answer at all."""
    blocked = find_cause(error, BlockedAddressError)
    message = explain_failure(error, url)
    if isinstance(error, httpx2.ReadError | httpx2.RemoteProtocolError):
        return Trouble("cut", None, message)
    is_hopeless = blocked is not None or isinstance(error, _NO_URL)
    return Trouble("unreachable", None, message, is_hopeless=is_hopeless)


def explain_failure(error: Exception, url: str) -> str:
    place = host_of(url)
    if find_cause(error, BlockedAddressError):
        return (
            f"{place} leads to a private address. Only the owner of this site may add "
            "providers on this machine or its network."
        )
    if isinstance(error, _NO_URL):
        return (
            "The provider's base URL is not valid. Correct it in Settings, Providers."
        )
    if find_cause(error, socket.gaierror):
        return f"There is no host named {place}. Check the provider's base URL."
    if find_cause(error, ssl.SSLError):
        return (
            f"The certificate of {place} can't be trusted, or it doesn't speak HTTPS. "
            "Check the provider's base URL."
        )
    if find_cause(error, ConnectionRefusedError):
        return (
            f"{place} refused the connection. Check that it is running, and the "
            "provider's base URL."
        )
    if isinstance(error, httpx2.TimeoutException):
        return f"{place} did not answer in time. Check the network, or try again later."
    if isinstance(error, httpx2.ReadError | httpx2.RemoteProtocolError):
        return f"{place} closed the connection without a whole answer. Try again."
    return f"{place} can't be reached. Check the network and the provider's base URL."


def find_cause(error: BaseException | None, kind: type[BaseException]) -> object:
    """The first error of that kind in the chain of causes, groups included."""
    while error is not None:
        if isinstance(error, kind):
            return error
        if isinstance(error, BaseExceptionGroup):
            return next(
                filter(None, (find_cause(e, kind) for e in error.exceptions)), None
            )
        error = error.__cause__ or error.__context__
    return None


def said_by(body: bytes) -> str:
    """What an error body says, in any of the usual shapes; capped."""
    try:
        content = json.loads(body)
    except ValueError:
        return "no readable reason given"
    for name in ("error", "detail", "message"):
        if isinstance(content, dict) and content.get(name):
            content = content[name]
            break
    if isinstance(content, dict):
        content = content.get("message") or content.get("type")
    return content[:500] if isinstance(content, str) else "no readable reason given"


def retry_after_seconds(headers: httpx2.Headers) -> float | None:
    """The wait that a provider asks for: milliseconds, seconds, or a date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after", "")
        if value.replace(".", "", 1).isdigit():
            return float(value)
        until = parsedate_to_datetime(value)
        return max(0.0, (until - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def host_of(url: str) -> str:
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or "The provider"
    except ValueError:
        return "The provider"
