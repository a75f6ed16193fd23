from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest

from agents.gateway.sentences import (
    explain_failure,
    find_cause,
    host_of,
    retry_after_seconds,
    said_by,
    trouble_from_failure,
)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"type": "t", "message": "m"}}', "m"),
        (b'{"error": {"type": "t"}}', "t"),
        (b'{"error": "text"}', "text"),
        (b'{"detail": "text"}', "text"),
        (b'{"message": "text"}', "text"),
        (b'{"error": ["x"]}', "no readable reason given"),
        (b"{}", "no readable reason given"),
        (b"[]", "no readable reason given"),
        (b"<html>", "no readable reason given"),
        (b"\xff", "no readable reason given"),
        (b'{"message": "' + b"x" * 900 + b'"}', "x" * 500),
    ],
)
def test_it_finds_what_an_error_says(body: bytes, said: str) -> None:
    assert said_by(body) == said


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "x"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000"}, None),
    ],
)
def test_it_reads_how_long_to_wait(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_seconds(httpx2.Headers(headers)) == seconds


def test_it_reads_a_date_to_wait_for() -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)

    seconds = retry_after_seconds(httpx2.Headers({"retry-after": until}))

    assert seconds is not None
    assert 3000 < seconds <= 3600


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (ssl.SSLCertVerificationError(1, "self-signed"), "certificate of x.example"),
        (ConnectionRefusedError(), "x.example refused the connection"),
        (OSError("No route to host"), "x.example can't be reached"),
        (
            ExceptionGroup("all", [OSError("a"), ConnectionRefusedError()]),
            "x.example refused the connection",
        ),
        (ExceptionGroup("all", [OSError("a")]), "x.example can't be reached"),
    ],
)
def test_it_tells_causes_apart(cause: Exception, words: str) -> None:
    error = httpx2.ConnectError("failed")
    error.__cause__ = cause

    assert words in explain_failure(error, "https://x.example/v1")


def test_a_lost_answer_is_a_cut() -> None:
    trouble = trouble_from_failure(httpx2.ReadError(""), "https://x.example")

    assert (trouble.kind, trouble.is_hopeless) == ("cut", False)
    assert "x.example closed the connection" in trouble.message


def test_no_cause_is_found_where_there_is_none() -> None:
    assert find_cause(None, OSError) is None
    assert find_cause(ValueError(), OSError) is None


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://x.example:8443/v1", "x.example:8443"),
        ("https://user:secret@x.example", "x.example"),
        ("", "The provider"),
        ("http://[x", "The provider"),
    ],
)
def test_it_names_the_host_and_no_secret(url: str, host: str) -> None:
    assert host_of(url) == host
