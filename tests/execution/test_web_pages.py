"""`fetch`: which addresses are refused, and what is made of a page that is read."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

from agents.errors import InvalidInputError
from agents.execution.web_pages import check_url, fetch_page
from agents.gateway.network import make_client
from agents.mcp.tools.web import describe

any_address = partial(make_client, allow_private=True, read_timeout_seconds=10)
NOT_PUBLIC = "not on the public internet"


class Site(BaseHTTPRequestHandler):
    """Answers with what `pages` holds: (status, headers, body)."""

    pages: ClassVar[dict[str, tuple[int, dict[str, str], bytes]]] = {}
    asked: ClassVar[list[tuple[str, dict[str, str]]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, dict(self.headers)))
        status, headers, body = self.pages[self.path]
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing to say."""


@pytest.fixture
def site() -> Iterator[str]:
    Site.pages.clear()
    Site.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0",
        "localhost",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "224.0.0.1",
        "255.255.255.255",
    ],
)
async def test_an_address_inside_is_refused_in_every_spelling(host: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        await fetch_page(f"http://{host}:9/")

    assert NOT_PUBLIC in refused.value.user_message


@pytest.mark.parametrize("host", ["0177.0.0.1", "127.0.0.1%00", "a..b", "x y"])
async def test_a_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(InvalidInputError, match=r"valid address|can't be read"):
        await fetch_page(f"http://{host}:9/")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://x.example/",
        "gopher://x.example/",
        "//x.example/",
        "https://",
        "https://x.example:0/",
        "https://x.example:99999/",
        "https://[::1/",
        "https://name:word@x.example/",
        "https://name@x.example/",
        "https://x.example/" + "a" * 4000,
        "",
    ],
)
def test_what_is_no_plain_web_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_url(url)

    assert refused.value.field == "url"


def test_a_plain_address_is_not() -> None:
    check_url("https://x.example:8443/a?b=c#d")


def resolve_in_turn(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Let names resolve to one answer after the other; returns what was asked."""
    real, left, asked = socket.getaddrinfo, list(answers), []

    def resolve(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if not name.endswith(".example"):
            return real(host, port, *args, **kwargs)
        asked.append(name)
        address = left.pop(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


async def test_a_name_that_changes_its_answer_is_never_connected_to_unchecked(
    monkeypatch: pytest.MonkeyPatch, site: str
) -> None:
    Site.pages["/"] = (200, {"Content-Type": "text/plain"}, b"inside")
    asked = resolve_in_turn(monkeypatch, "127.0.0.1", "93.184.215.14")
    port = site.rpartition(":")[2]

    with pytest.raises(InvalidInputError, match=NOT_PUBLIC):
        await fetch_page(f"http://rebound.example:{port}/")

    assert asked == ["rebound.example"]
    assert Site.asked == []


async def test_a_redirect_inside_is_refused_like_the_first_address(
    monkeypatch: pytest.MonkeyPatch, site: str
) -> None:
    """The first address counts as public here, the second as what it is."""
    Site.pages["/"] = (302, {"Location": "http://10.1.2.3/secret"}, b"")
    monkeypatch.setattr(
        "agents.gateway.network.is_public_address",
        lambda address: address == "127.0.0.1",
    )

    with pytest.raises(InvalidInputError, match=NOT_PUBLIC):
        await fetch_page(f"{site}/")

    assert [path for path, _ in Site.asked] == ["/"]


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "http://a:b@x.example/", "http://[::1/"]
)
async def test_a_redirect_to_no_plain_web_address_is_refused(
    site: str, target: str
) -> None:
    Site.pages["/"] = (301, {"Location": target}, b"")

    with pytest.raises(InvalidInputError):
        await fetch_page(f"{site}/", any_address)


async def test_redirects_come_to_an_end(site: str) -> None:
    Site.pages["/"] = (307, {"Location": "/"}, b"")

    with pytest.raises(InvalidInputError, match="more than 5 times"):
        await fetch_page(f"{site}/", any_address)

    assert len(Site.asked) == 6


async def test_a_page_is_read_as_text_without_cookies_of_the_one_before(
    site: str,
) -> None:
    cookie = {"Location": "page", "Set-Cookie": "id=1"}
    Site.pages["/"] = (302, cookie, b"")
    Site.pages["/page"] = (
        200,
        {"Content-Type": "text/html; charset=latin-1", "Content-Encoding": "gzip"},
        gzip.compress("<title>Bees</title><p>K\xe4fer ```".encode("latin-1")),
    )

    page = await fetch_page(f"{site}/", any_address)

    assert (page.url, page.status, page.title) == (f"{site}/page", 200, "Bees")
    assert page.text == "Käfer ```"
    assert not {"Cookie", "Authorization"} & set(Site.asked[-1][1])
    assert describe(page).endswith("Käfer ```\n````")


async def test_a_packed_bomb_is_unpacked_only_so_far(
    site: str, override_conf: Any
) -> None:
    override_conf(fetch_max_bytes=1000)
    bomb = gzip.compress(b"x" * 10_000_000)
    headers = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
    Site.pages["/"] = (200, headers, bomb)

    page = await fetch_page(f"{site}/", any_address)

    assert (len(page.text), page.is_cut) == (1000, True)


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"Content-Type": "image/png"}, "which is no text"),
        ({"Content-Type": "application/octet-stream"}, "which is no text"),
        ({"Content-Encoding": "br"}, "packed with br"),
        ({"Content-Encoding": "gzip"}, "packed in a way"),
    ],
)
async def test_what_is_no_readable_text_is_refused(
    site: str, headers: dict[str, str], sentence: str
) -> None:
    Site.pages["/"] = (200, headers, b"data")

    with pytest.raises(InvalidInputError, match=sentence):
        await fetch_page(f"{site}/", any_address)


@pytest.mark.parametrize("kind", ["application/json", "application/ld+json", "text/x"])
async def test_other_texts_come_as_they_are(site: str, kind: str) -> None:
    headers = {"Content-Type": f"{kind}; charset=hex"}
    Site.pages["/"] = (404, headers, b'{"a": "<b>"}')

    page = await fetch_page(f"{site}/", any_address)

    assert (page.status, page.content_type, page.text) == (404, kind, '{"a": "<b>"}')


async def test_a_page_that_never_comes_is_not_waited_for(
    override_conf: Any,
) -> None:
    override_conf(fetch_seconds=0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]

        with pytest.raises(InvalidInputError, match=r"in time|ReadTimeout"):
            await fetch_page(f"http://127.0.0.1:{port}/", any_address)
