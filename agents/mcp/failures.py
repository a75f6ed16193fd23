"""What is wrong with a server, as a status and a sentence for people."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED

from agents.conf import conf
from agents.domain.mcp_servers import ConnectionSpec
from agents.errors import AgentsError
from agents.models.mcp_servers import McpStatus

from .stdio import MAX_LINE_BYTES, Complaints

E = TypeVar("E", bound=BaseException)

_NOT_FOUND_STATUS = 127


@dataclass(slots=True)
class Symptoms:
    """What was noticed beside the error that ended a connection."""

    http_status: int | None = None
    """The last answer of 400 or more."""
    complaints: Complaints | None = None
    is_blocked: bool = False
    """Whether the address turned out to be a private one that nobody vouched for."""


@dataclass(frozen=True, slots=True)
class Fault:
    status: McpStatus
    reason: str


def explain(spec: ConnectionSpec, error: BaseException, symptoms: Symptoms) -> Fault:
    if spec.is_program:
        return Fault(McpStatus.ERROR, _explain_program(error, symptoms.complaints))
    if symptoms.is_blocked:
        return Fault(McpStatus.ERROR, _explain_blocked(_host_of(spec.url)))
    if symptoms.http_status == 401:
        return Fault(
            McpStatus.NEEDS_AUTH, "The server refuses the credentials (HTTP 401)."
        )
    if symptoms.http_status is not None and _is_protocol_error(error):
        return Fault(McpStatus.ERROR, _explain_status(symptoms.http_status))
    return Fault(McpStatus.ERROR, _explain_address(error, _host_of(spec.url)))


def _explain_program(error: BaseException, complaints: Complaints | None) -> str:
    if complaints is not None and complaints.is_too_long:
        megabytes = MAX_LINE_BYTES // 1024**2
        return f"The program sent a message of more than {megabytes} MB."
    if find(error, TimeoutError):
        return f"The program did not answer within {conf().mcp_start_seconds:g} s."
    if own := find(error, AgentsError):
        return own.user_message
    if (said := find(error, MCPError)) and said.code != CONNECTION_CLOSED:
        return f"The program says: {said.message[:300]}"
    status = complaints.exit_status if complaints is not None else None
    if status == _NOT_FOUND_STATUS:
        return "The command was not found. Its jail shows /usr and the listed folders."
    if status is None:
        return "The program can’t be started."
    return f"The program ended (exit status {status})."


def _explain_blocked(host: str) -> str:
    return (
        f"{host} leads to a private address. Only an owner of this site may add servers"
        " on this machine or its network."
    )


def _explain_status(status: int) -> str:
    if status == 403:
        return "The server refuses access (HTTP 403)."
    if status in (404, 405):
        return f"There is no MCP server at this address (HTTP {status})."
    return f"The server answered with an error (HTTP {status})."


def _explain_address(error: BaseException, host: str) -> str:
    if own := find(error, AgentsError):
        return own.user_message
    if find(error, socket.gaierror):
        return f"There is no host named {host}."
    if find(error, ssl.SSLError):
        return f"The certificate of {host} can’t be trusted, or it speaks no HTTPS."
    if find(error, ConnectionRefusedError):
        return f"{host} refused the connection. Check that the server is running."
    if find(error, TimeoutError) or find(error, httpx2.TimeoutException):
        return f"{host} did not answer within {conf().mcp_start_seconds:g} s."
    if said := find(error, MCPError):
        return f"The server says: {said.message[:300]}"
    if find(error, httpx2.TransportError):
        return f"{host} can’t be reached."
    return "The server does not speak MCP as expected."


def _is_protocol_error(error: BaseException) -> bool:
    return bool(find(error, MCPError) or find(error, httpx2.HTTPStatusError))


def find(error: BaseException, kind: type[E]) -> E | None:
    """The first error of that kind among an error and its causes, groups included."""
    return next((each for each in _chain(error) if isinstance(each, kind)), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for each in error.exceptions:
                yield from _chain(each)
        error = error.__cause__ or error.__context__


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or "The server"
    except ValueError:
        return "The server"
