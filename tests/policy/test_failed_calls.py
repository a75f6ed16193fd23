from __future__ import annotations

import pytest

from agents.policy.failed_calls import FailureKind, advise, failure_kind


@pytest.mark.parametrize(
    ("tool", "error", "kind"),
    [
        ("Bash", "Command timed out after 2m", FailureKind.RETRYABLE),
        ("Bash", "connect ECONNREFUSED 10.0.0.1:80", FailureKind.RETRYABLE),
        ("fetch", "HTTP 503 Service Unavailable", FailureKind.RETRYABLE),
        ("fetch", "HTTP 429: rate limit", FailureKind.RETRYABLE),
        ("Read", "File does not exist.", FailureKind.FIXABLE),
        ("Read", "ENOENT: no such file", FailureKind.FIXABLE),
        ("Edit", "String to replace not found in file.", FailureKind.FIXABLE),
        ("Edit", "InputValidationError: missing required", FailureKind.FIXABLE),
        ("Bash", "Exit code 2\nls: unknown option", FailureKind.FIXABLE),
        ("fetch", "HTTP 404 not found", FailureKind.TERMINAL),
        ("fetch", "HTTP 403 Forbidden", FailureKind.TERMINAL),
        ("Write", "EACCES: permission denied", FailureKind.TERMINAL),
        ("Write", "EROFS: read-only file system", FailureKind.TERMINAL),
        ("mcp__a__b", "It broke.", FailureKind.TERMINAL),
        ("mcp__a__b", "", FailureKind.TERMINAL),
    ],
)
def test_an_error_tells_its_kind(tool: str, error: str, kind: FailureKind) -> None:
    assert failure_kind(tool, error) == kind
    assert advise(tool, error).suggestion


def test_no_permission_weighs_more_than_what_else_is_said() -> None:
    said = "timed out: invalid answer: permission denied"

    assert failure_kind("Bash", said) == FailureKind.TERMINAL


def test_what_may_help_instead_depends_on_the_tool() -> None:
    assert advise("Read", "No such file").alternatives == ("Glob", "Grep")
    assert advise("Read", "It is a directory").alternatives == ()
    assert advise("mcp__files__Edit", "not unique").alternatives == ("Read", "Write")
