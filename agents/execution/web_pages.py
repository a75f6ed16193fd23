"""Reading a page of the public web for an agent, without a way into our own network.

Each address, redirects too, goes through a client that resolves names itself and
connects only to the public addresses that it checked. It knows no keys and no cookies.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

import httpx2

from agents.conf import conf
from agents.errors import InvalidInputError
from agents.gateway.network import BlockedAddressError, make_client
from agents.gateway.sentences import find_cause
from agents.mcp.tools.web import Page
from agents.rendering.web_text import html_to_text, title_of

MAX_REDIRECTS = 5
MAX_URL_CHARACTERS = 4_000
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9",
    "accept-encoding": "gzip",
    "user-agent": "OpenSwarm-fetch/1.0",
}
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS = frozenset({"json", "xml", "javascript", "yaml", "x-yaml", "toml"})

OpenClient = Callable[[], httpx2.AsyncClient]


def guarded_client() -> httpx2.AsyncClient:
    """One that reaches public addresses only."""
    return make_client(allow_private=False, read_timeout_seconds=conf().fetch_seconds)


async def fetch_page(url: str, open_client: OpenClient = guarded_client) -> Page:
    """Read one page, bounded in time, size and redirects.

    Raises: InvalidInputError: with a sentence for the model; field `url`.
    """
    try:
        async with asyncio.timeout(conf().fetch_seconds), open_client() as client:
            return await _follow(client, url)
    except TimeoutError:
        raise _refusal("The page did not come in time.") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, zlib.error) as error:
        raise _refusal(_why(error)) from error


async def _follow(client: httpx2.AsyncClient, url: str) -> Page:
    for _ in range(MAX_REDIRECTS + 1):
        check_url(url)
        request = client.build_request("GET", url, headers=_HEADERS)
        answer = await client.send(request, stream=True)
        try:
            target = answer.headers.get("location")
            if answer.status_code not in _REDIRECTS or not target:
                return await _read(answer, url)
        finally:
            await answer.aclose()
        url = _joined(url, target)
    raise _refusal(f"The page redirects more than {MAX_REDIRECTS} times.")


def _joined(url: str, target: str) -> str:
    try:
        return urljoin(url, target)
    except ValueError:
        raise _refusal("The page redirects to no valid address.") from None


def check_url(url: str) -> None:
    """What can be said about an address before its name is resolved.

    Raises: InvalidInputError.
    """
    try:
        parts = urlsplit(url)
        has_port_zero = parts.port == 0
    except ValueError:
        raise _refusal("This is not a valid address.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or has_port_zero:
        raise _refusal("Only addresses that begin with https:// or http:// are read.")
    if "@" in parts.netloc:
        raise _refusal("An address with a name or a password in it is not read.")
    if len(url) > MAX_URL_CHARACTERS:
        raise _refusal("The address is too long.")


async def _read(answer: httpx2.Response, url: str) -> Page:
    kind = answer.headers.get("content-type", "text/plain").partition(";")[0]
    kind = kind.strip().lower()
    if not _is_text(kind):
        raise _refusal(f"The address holds {kind or 'something'}, which is no text.")
    data, is_cut = await _body(answer)
    text, title = _decode(data, answer), ""
    if kind in _HTML:
        # A long page takes a while, and the loop has other turns to serve.
        title = await asyncio.to_thread(title_of, text)
        text = await asyncio.to_thread(html_to_text, text)
    return Page(url, answer.status_code, kind, title, text, is_cut=is_cut)


def _is_text(kind: str) -> bool:
    main, _, sub = kind.partition("/")
    if main == "text" or kind in _HTML:
        return True
    return main == "application" and sub.rpartition("+")[2] in _TEXTS


async def _body(answer: httpx2.Response) -> tuple[bytes, bool]:
    """As much as is read of the page; packed pages are unpacked only that far."""
    limit = conf().fetch_max_bytes
    unpack = _unpacker(answer)
    data = bytearray()
    async for chunk in answer.aiter_raw():
        data += unpack(chunk, limit + 1 - len(data))
        if len(data) > limit:
            return bytes(data[:limit]), True
    return bytes(data), False


def _unpacker(answer: httpx2.Response) -> Callable[[bytes, int], bytes]:
    encoding = answer.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        return lambda chunk, room: chunk[:room]
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise _refusal(f"The page is packed with {encoding}, which can't be read.")
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    # A room of 0 would mean no limit at all.
    return lambda chunk, room: stream.decompress(chunk, max(room, 1))


def _decode(data: bytes, answer: httpx2.Response) -> str:
    try:
        return data.decode(answer.charset_encoding or "utf-8", errors="replace")
    except LookupError:  # no name of a text encoding
        return data.decode(errors="replace")


def _why(error: Exception) -> str:
    if find_cause(error, BlockedAddressError):
        return "The address is not on the public internet, so it is not read."
    if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        return "This is not a valid address."
    if isinstance(error, zlib.error):
        return "The page is packed in a way that can't be read."
    return f"The page can't be read: {type(error).__name__}."


def _refusal(sentence: str) -> InvalidInputError:
    return InvalidInputError(sentence, field="url")
