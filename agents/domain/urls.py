"""Which addresses people may point the server at.

A member's base URL must not reach what only this machine or its network can see:
the server would fetch it with its own rights. Only the owner may vouch for those.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import SplitResult, urlsplit

from agents.errors import InvalidInputError

# Public by its number, and yet inside a cloud: there a machine asks about itself.
_METADATA = frozenset({ipaddress.ip_address("168.63.129.16")})
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def check_base_url(url: str, *, allow_private: bool) -> None:
    """Refuse a base URL that is no usable address, or one that isn't public.

    Resolves the host (blocks) unless `allow_private`. A name may point elsewhere
    later, so whoever connects checks the addresses again.
    Raises: InvalidInputError: with a sentence for the form; field `base_url`.
    """
    parts = _checked_parts(url)
    if allow_private:
        return
    host = parts.hostname or ""
    for address in _addresses(host):
        if not is_public_address(address):
            raise _invalid(
                f"{host} is a private address. Only the owner of this site may add "
                "providers on this machine or its network."
            )


def check_server_url(url: str, *, allow_private: bool) -> None:
    """The same for the address of an MCP server, which may have a query.

    Raises: InvalidInputError: field `url`.
    """
    try:
        check_base_url(url.partition("?")[0], allow_private=allow_private)
    except InvalidInputError as error:
        sentence = error.user_message.replace("add providers", "add servers")
        raise InvalidInputError(sentence, field="url") from error


def is_public_address(address: str) -> bool:
    """Whether an IP address is one of the open internet.

    IPv6 forms that carry an IPv4 address are judged by the address inside.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public_address(str(inner))
    return ip.is_global and not ip.is_multicast and ip not in _METADATA


def _checked_parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        has_port_zero = parts.port == 0
    except ValueError as error:
        raise _invalid("This is not a valid address.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or has_port_zero:
        raise _invalid("Enter an address that begins with https:// or http://.")
    if parts.username is not None or parts.password is not None:
        raise _invalid("Put the key into its own field, not into the address.")
    if parts.query or parts.fragment:
        raise _invalid("Leave out everything from ? or # on.")
    return parts


def _addresses(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _invalid(f"There is no host named {host}.") from error
    return [str(entry[4][0]) for entry in found]


def _invalid(sentence: str) -> InvalidInputError:
    return InvalidInputError(sentence, field="base_url")
