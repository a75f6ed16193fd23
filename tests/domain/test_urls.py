from __future__ import annotations

import socket
from typing import Any

import pytest

from agents.domain.urls import check_base_url, is_public_address
from agents.errors import InvalidInputError


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def resolve(host: str, *args: Any, **kwargs: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "2606:2800:21f:cb07::1",
        "::ffff:93.184.215.14",
        "64:ff9b::808:808",
    ],
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104  judged, not bound
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    ],
)
def test_all_others_are_not(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize("url", ["https://api.example", "http://api.example:8080/v1"])
def test_a_public_address_may_be_used(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    resolve_to(monkeypatch, "93.184.215.14")

    check_base_url(url, allow_private=False)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:11434",
        "http://localhost",
        "http://[::1]:8000",
        "http://169.254.169.254/latest",
        "http://0",
        "http://2130706433",
        "http://0x7f.1",
    ],
)
def test_private_addresses_are_the_owners_to_add(url: str) -> None:
    with pytest.raises(InvalidInputError, match="private address") as refusal:
        check_base_url(url, allow_private=False)

    assert refusal.value.field == "base_url"
    check_base_url(url, allow_private=True)


def test_one_private_address_among_others_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_to(monkeypatch, "93.184.215.14", "10.0.0.1")

    with pytest.raises(InvalidInputError, match="private address"):
        check_base_url("https://both.example", allow_private=False)


@pytest.mark.parametrize("host", ["name.invalid", "x" * 70 + ".example"])
def test_a_host_that_is_not_there_is_told(host: str) -> None:
    with pytest.raises(InvalidInputError, match="no host named"):
        check_base_url(f"https://{host}", allow_private=False)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "begins with https"),
        ("api.example", "begins with https"),
        ("ftp://api.example", "begins with https"),
        ("javascript:alert(1)", "begins with https"),
        ("https://", "begins with https"),
        ("https://api.example:0", "begins with https"),
        ("https://api.example:port", "not a valid address"),
        ("https://api.example:99999", "not a valid address"),
        ("https://[x", "not a valid address"),
        ("https://user:key@api.example", "its own field"),
        ("https://key@api.example", "its own field"),
        ("https://api.example/?key=1", "from [?] or # on"),
        ("https://api.example/#x", "from [?] or # on"),
    ],
)
@pytest.mark.parametrize("allow_private", [True, False])
def test_what_is_no_base_url_is_refused(
    url: str, words: str, allow_private: bool
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        check_base_url(url, allow_private=allow_private)
