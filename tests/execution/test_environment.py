"""The allow-list of the CLI's environment."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from agents.execution.environment import child_environment

SESSION = UUID("6f1b0f0a-7d4c-4f57-9f0e-0c6a3a9f7b11")


def environment(**changes) -> dict[str, str]:
    values = {
        "session_id": SESSION,
        "home": Path("/data/cli/x/h"),
        "tmp": Path("/data/cli/x/t"),
        "token": "secret-token",
        "jailed": True,
    }
    return child_environment(**{**values, **changes})


COMMON = {
    "OPENSWARM_RUN": str(SESSION),
    "HOME": "/data/cli/x/h",
    "CLAUDE_CONFIG_DIR": "/data/cli/x/h/.claude",
    "PATH": "/data/cli/x/h/.local/bin:"
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "ANTHROPIC_AUTH_TOKEN": "secret-token",
    "CLAUDE_CODE_MAX_RETRIES": "4",
    "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS": "90000",
    "API_TIMEOUT_MS": "120000",
    "MCP_TIMEOUT": "10000",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    "CLAUDE_CODE_ENABLE_TASKS": "0",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
}


def test_a_jailed_process_speaks_through_the_socket():
    assert environment(timezone="Europe/Berlin") == {
        **COMMON,
        "TZ": "Europe/Berlin",
        "TMPDIR": "/tmp",
        "CLAUDE_CODE_TMPDIR": "/tmp",
        "ANTHROPIC_BASE_URL": "http://localhost",
        "ANTHROPIC_UNIX_SOCKET": "/run/gateway.sock",
    }


def test_without_the_jail_it_speaks_to_the_loopback_port():
    assert environment(jailed=False, base_url="http://127.0.0.1:4711") == {
        **COMMON,
        "TZ": "UTC",
        "TMPDIR": "/data/cli/x/t",
        "CLAUDE_CODE_TMPDIR": "/data/cli/x/t",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:4711",
    }


def test_nothing_is_taken_from_the_servers_environment(monkeypatch):
    before = environment()
    for name in [*before, "DJANGO_SECRET_KEY", "ANTHROPIC_API_KEY", "HTTPS_PROXY"]:
        monkeypatch.setenv(name, "of-the-server")

    assert environment() == before


def test_the_retry_numbers_are_settings(settings):
    settings.OPENSWARM = {**settings.OPENSWARM, "cli_max_retries": 0}

    assert environment()["CLAUDE_CODE_MAX_RETRIES"] == "0"
