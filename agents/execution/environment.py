"""The environment of the CLI: an allow-list, built from nothing.

Nothing of the server's own environment goes in, so that no key, SECRET_KEY or
database address can reach an agent. The launcher applies it (`confinement.py`);
what is passed in `ClaudeAgentOptions.env` would only be added to the server's own.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from agents.conf import conf

# Names the processes of a session, for `processes.py`.
RUN_MARKER = "OPENSWARM_RUN"
# One fixed, short path: Unix socket addresses end at 107 bytes.
GATEWAY_SOCKET_IN_JAIL = Path("/run/gateway.sock")
SYSTEM_PROMPT_IN_JAIL = Path("/run/system-prompt")
# The CLI wants a URL even though it speaks through the socket.
BASE_URL_IN_JAIL = "http://localhost"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def config_dir(home: Path) -> Path:
    """Return the CLI's CLAUDE_CONFIG_DIR for a session's home.

    It must also stand in `ClaudeAgentOptions.env`: the SDK copies credentials from
    there when it resumes, and from the server user's own ~/.claude without it.
    """
    return home / ".claude"


def child_environment(
    *,
    session_id: UUID,
    home: Path,
    tmp: Path,
    token: str,
    jailed: bool,
    base_url: str = BASE_URL_IN_JAIL,
    timezone: str = "UTC",
    sends_effort: bool = True,
) -> dict[str, str]:
    """Return the whole environment of one CLI process.

    Args:
        tmp: the session's temporary folder; seen as /tmp in the jail.
        token: the gateway's token of this process, never a real key.
        base_url: the gateway's loopback address; only used without the jail.
        sends_effort: False for a model that may not know the field; the CLI would
            send a level of its own choice.
    """
    visible_tmp = "/tmp" if jailed else str(tmp)  # noqa: S108 - private to the jail
    return {
        RUN_MARKER: str(session_id),
        **_places(home, visible_tmp, timezone),
        **_gateway(token, jailed=jailed, base_url=base_url),
        **_numbers(),
        **SWITCHES,
        **({} if sends_effort else {"CLAUDE_CODE_EFFORT_LEVEL": "unset"}),
    }


SWITCHES = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    # Verbatim prompts expand no `@path`; a skill's text would, past every hook.
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    "CLAUDE_CODE_ENABLE_TASKS": "0",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
}


def _places(home: Path, tmp: str, timezone: str) -> dict[str, str]:
    return {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(config_dir(home)),
        "CLAUDE_CODE_TMPDIR": tmp,
        "TMPDIR": tmp,
        "PATH": f"{home}/.local/bin:{SYSTEM_PATH}",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TZ": timezone,
    }


def _gateway(token: str, *, jailed: bool, base_url: str) -> dict[str, str]:
    if not jailed:
        return {"ANTHROPIC_BASE_URL": base_url, "ANTHROPIC_AUTH_TOKEN": token}
    return {
        "ANTHROPIC_BASE_URL": BASE_URL_IN_JAIL,
        "ANTHROPIC_AUTH_TOKEN": token,
        "ANTHROPIC_UNIX_SOCKET": str(GATEWAY_SOCKET_IN_JAIL),
    }


def _numbers() -> dict[str, str]:
    limits = conf()
    return {
        "CLAUDE_CODE_MAX_RETRIES": str(limits.cli_max_retries),
        "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS": str(limits.cli_stream_idle_ms),
        "API_TIMEOUT_MS": str(limits.cli_api_timeout_ms),
        "MCP_TIMEOUT": str(limits.cli_mcp_timeout_ms),
    }
