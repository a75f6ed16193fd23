"""Every number and switch of the application, in one typed place.

`conf()` reads Django's `settings.OPENSWARM` (a dict of overrides, filled from
`OPENSWARM_*` environment variables by `openswarm/env.py`) on each call, so that
tests can override any of them. `policy` gets its values as arguments instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Conf:
    # runs and admission
    max_runs_per_process: int = 8
    max_runs_per_user: int = 6
    max_cli_starts: int = 2
    max_invocation_depth: int = 3
    max_children: int = 5
    lease_seconds: float = 30
    heartbeat_seconds: float = 10
    warm_idle_seconds: float = 300
    warm_clients: int = 16

    # one run
    connect_timeout_seconds: float = 60
    interrupt_timeout_seconds: float = 1
    stop_deadline_seconds: float = 4
    control_poll_seconds: float = 3
    stalled_after_seconds: float = 20
    delta_join_seconds: float = 0.05
    delta_save_seconds: float = 1.0
    max_buffer_bytes: int = 64 * 1024 * 1024

    # the time of one turn by its effort; waiting for a person doesn't count
    low_effort_seconds: float = 2 * 60
    medium_effort_seconds: float = 10 * 60
    high_effort_seconds: float = 30 * 60
    max_effort_seconds: float = 120 * 60

    # the CLI's own retries
    cli_max_retries: int = 4
    cli_stream_idle_ms: int = 90_000
    cli_api_timeout_ms: int = 120_000
    cli_mcp_timeout_ms: int = 10_000

    # approvals
    approval_hot_seconds: float = 600
    approval_poll_seconds: float = 3
    approval_expiry_days: int = 30

    # live pages
    watch_poll_seconds: float = 3
    replay_max_events: int = 200
    transcript_page_size: int = 60
    message_preview_bytes: int = 64 * 1024

    # the event streams of programs
    stream_heartbeat_seconds: float = 15
    stream_poll_seconds: float = 3
    streams_per_user: int = 100

    # policy switches of the site
    require_jail: bool = False
    disable_jail: bool = False
    allow_unjailed_execution: bool = False
    ask_for_everything: bool = False
    sandbox_network_reads: bool = False

    # the jail
    jail_max_processes: int = 512
    jail_max_memory_bytes: int = 8 * 1024**3

    # snapshots of workspaces
    snapshot_timeout_seconds: float = 30
    snapshot_max_files: int = 20_000
    snapshot_max_file_bytes: int = 10 * 1024**2
    snapshot_max_total_bytes: int = 500 * 1024**2
    snapshot_max_history_bytes: int = 2 * 1024**3
    worktree_timeout_seconds: float = 120

    # sign-in
    login_attempts: int = 10
    login_window_seconds: int = 300
    invite_days: int = 7

    # gateway
    gateway_join_ms: float = 30
    gateway_connect_timeout_seconds: float = 10
    gateway_read_timeout_seconds: float = 600
    provider_test_seconds: float = 30
    last_request_max_bytes: int = 4 * 1024 * 1024

    # connections to MCP servers
    mcp_start_seconds: float = 30
    mcp_call_seconds: float = 600
    mcp_idle_seconds: float = 600

    # names and icons that a cheap model gives, beside the turns
    generate_titles: bool = True
    side_calls: int = 2
    side_call_seconds: float = 20
    side_call_max_usd_micros: int = 20_000

    # what an agent is told with each turn, and what it may fetch
    memory_facts: int = 200
    workspace_notes_bytes: int = 16 * 1024
    fetch_seconds: float = 20
    fetch_max_bytes: int = 2 * 1024**2

    # looks for what deleted sessions left on disk
    cleaning_seconds: float = 300

    # models
    cheap_model: str = "claude-haiku-4-5"
    # A demo model that runs already, as in the tests; empty: each server has its own.
    demo_url: str = ""
    default_model: str = "claude-sonnet-5-5"


def conf() -> Conf:
    return Conf(**settings.OPENSWARM)


def data_dir() -> Path:
    """The folder of everything the site writes: database, workspaces, CLI homes."""
    return Path(settings.DATA_DIR)


def workspaces_dir() -> Path:
    return data_dir() / "workspaces"


def cli_homes_dir() -> Path:
    """Per-session homes of the CLI; short, since Unix sockets allow 107 bytes."""
    return data_dir() / "cli"


def mcp_homes_dir() -> Path:
    """Per MCP server that is a program: what its jail lets it write."""
    return data_dir() / "mcp"


def snapshots_dir() -> Path:
    """Per session: the git folder of its snapshots, which no agent ever sees."""
    return data_dir() / "snapshots"
