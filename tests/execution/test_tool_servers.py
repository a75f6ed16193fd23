"""Connections to real servers: programs, addresses, and all that goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from mcp.types import CallToolResult, TextContent

from agents.domain.mcp_discovery import Report
from agents.domain.mcp_servers import ConnectionSpec
from agents.execution.confinement import JailStatus, probe_jail
from agents.execution.tool_servers import ServerWays, check_server
from agents.mcp.connection import Connection, ConnectionFailedError
from agents.models.mcp_servers import McpStatus
from tests.mcp.http_server import Site, far_server, listen
from tests.mcp.programs import notes_command, notes_folders

needs_jail = pytest.mark.skipif(not probe_jail().jailed, reason="no jail here")


def program(*command: str, **fields: Any) -> ConnectionSpec:
    folders = tuple(Path(folder) for folder in notes_folders())
    fields = {"folders": folders, **fields}
    return ConnectionSpec(uuid4(), "notes", "stdio", 1, command=command, **fields)


def notes(how: str = "", **fields: Any) -> ConnectionSpec:
    return program(*notes_command(how), **fields)


def address(site: Site, transport: str = "http", **fields: Any) -> ConnectionSpec:
    fields = {"url": site.url, "may_be_private": True, **fields}
    return ConnectionSpec(uuid4(), "far", transport, 1, **fields)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("Authorization", f"Bearer {token}"),)


class Trace:
    """Finds the processes of a program by a name in their environment."""

    def __init__(self) -> None:
        self.name = uuid4().hex
        self.secrets = (("TRACE", self.name),)

    @property
    def alive(self) -> list[str]:
        return [
            path.parent.name
            for path in Path("/proc").glob("[0-9]*/environ")
            if self.name.encode() in _content(path)
        ]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has just gone
        return b""


async def forget(spec: ConnectionSpec, report: Report) -> None:
    """Nobody keeps the reports of these tests."""


@pytest.fixture
def trace() -> Trace:
    return Trace()


# Programs


@needs_jail
async def test_a_program_names_its_tools_and_leaves_nothing(
    trace: Trace,
) -> None:
    spec = notes(secrets=trace.secrets)

    report = await check_server(spec)

    assert (report.status, report.reason) == (McpStatus.CONNECTED, "")
    assert report.instructions == "Keep notes short."
    tools = {tool.name: tool for tool in report.tools}
    assert tools["read_note"].annotations == {"readOnlyHint": True}
    assert tools["write.note"].input_schema["required"] == ["title", "text"]
    assert trace.alive == []
    assert sorted(path.name for path in spec.home.iterdir()) == ["h", "t"]


@needs_jail
async def test_a_program_sees_its_own_environment_and_home_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SERVER_SECRET", "of the server")
    spec = notes(secrets=(("TOKEN", "s3cret"),))
    connection = Connection(spec, ServerWays(probe_jail()), forget)

    seen = text_of(await connection.call("environment", {}))
    await connection.close()

    assert "TOKEN=s3cret" in seen
    assert f"cwd={spec.home.resolve() / 'h'}" in seen
    assert "SERVER_SECRET" not in seen
    names = seen.partition("]")[0]
    assert names == (
        "names=['HOME', 'LANG', 'OPENSWARM_RUN', 'PATH', 'PWD', 'TMPDIR', 'TOKEN'"
    )


@needs_jail
@pytest.mark.parametrize(
    ("how", "words", "tail"),
    [
        ("die", "ended (exit status 7)", "no database here"),
        ("hang", "did not answer within 2 s", ""),
        ("long", "more than 16 MB", ""),
    ],
)
async def test_a_bad_program_becomes_a_reason(
    how: str, words: str, tail: str, override_conf: Any, trace: Trace
) -> None:
    # The others need longer on a busy machine, but end by themselves.
    override_conf(mcp_start_seconds=2 if how == "hang" else 60)

    report = await check_server(notes(how, secrets=trace.secrets))

    assert report.status == McpStatus.ERROR
    assert words in report.reason
    assert report.stderr_tail == tail
    assert trace.alive == []


@needs_jail
async def test_complaints_without_end_hurt_nobody(trace: Trace) -> None:
    spec = notes("flood", secrets=trace.secrets)
    connection = Connection(spec, ServerWays(probe_jail()), forget)

    answer = text_of(await connection.call("read_note", {"title": "none"}))
    assert trace.alive != [], "the control: it is at work"
    await connection.close()

    assert answer == "no note none"
    assert trace.alive == []


@needs_jail
async def test_a_command_that_is_not_there_is_named() -> None:
    report = await check_server(program("no-such-program"))

    assert "not found" in report.reason
    assert "no-such-program" in report.stderr_tail


@needs_jail
async def test_a_program_that_crashes_says_how_and_the_next_call_starts_another() -> (
    None
):
    reports: list[Report] = []

    async def keep(spec: ConnectionSpec, report: Report) -> None:
        reports.append(report)

    connection = Connection(notes(), ServerWays(probe_jail()), keep)

    with pytest.raises(ConnectionFailedError, match="exit status 3"):
        await connection.call("crash", {})

    assert not connection.is_alive
    assert [each.status for each in reports] == [McpStatus.CONNECTED, McpStatus.ERROR]


async def test_without_a_jail_no_program_starts(override_conf: Any) -> None:
    no_jail = JailStatus(False, "bubblewrap is not installed.")
    ways = ServerWays(no_jail)

    connection = Connection(notes(), ways, forget)
    with pytest.raises(ConnectionFailedError, match="run in a jail only"):
        await connection.connected()

    override_conf(allow_unjailed_execution=True)
    trusted = Connection(notes(), ways, forget)
    assert (await trusted.connected()).status == McpStatus.CONNECTED
    await trusted.close()


@needs_jail
async def test_a_folder_that_became_a_link_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")

    report = await check_server(program("true", folders=(tmp_path / "link",)))

    assert "not there any longer" in report.reason


# Addresses


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_an_address_is_asked_with_its_headers(transport: str) -> None:
    with far_server(Site(token="t0ken"), is_sse=transport == "sse") as site:
        refused = await check_server(address(site, transport))
        report = await check_server(address(site, transport, secrets=bearer("t0ken")))

    assert (refused.status, refused.reason) == (
        McpStatus.NEEDS_AUTH,
        "The server refuses the credentials (HTTP 401).",
    )
    assert report.status == McpStatus.CONNECTED
    assert [tool.name for tool in report.tools] == ["look", "change"]


@pytest.mark.parametrize(
    ("status", "words"),
    [(403, "refuses access"), (404, "no MCP server"), (500, "HTTP 500")],
)
async def test_other_refusals_are_told_apart(status: int, words: str) -> None:
    with far_server(Site(status=status)) as site:
        report = await check_server(address(site))

    assert report.status == McpStatus.ERROR
    assert words in report.reason


async def test_a_private_address_needs_an_owners_word() -> None:
    with far_server() as site:
        report = await check_server(address(site, may_be_private=False))

        assert report.status == McpStatus.ERROR
        assert "private address" in report.reason
        assert (await check_server(address(site))).status == McpStatus.CONNECTED


async def test_nobody_at_an_address_is_a_reason() -> None:
    with far_server() as site:
        pass

    report = await check_server(address(site))

    assert "refused the connection" in report.reason


async def test_an_address_that_never_answers_is_given_up(override_conf: Any) -> None:
    override_conf(mcp_start_seconds=1)

    with listen() as silent:
        port = silent.getsockname()[1]
        site = Site(url=f"http://127.0.0.1:{port}/mcp")
        report = await check_server(address(site))

    assert report.reason == f"127.0.0.1:{port} did not answer within 1 s."


async def test_a_credential_that_stops_working_ends_the_connection() -> None:
    with far_server(Site(token="t0ken")) as site:
        spec = address(site, secrets=bearer("t0ken"))
        connection = Connection(spec, ServerWays(probe_jail()), forget)
        assert text_of(await connection.call("look", {"what": "it"})) == "it is fine"

        site.token = "another"
        with pytest.raises(ConnectionFailedError) as failed:
            await connection.call("look", {"what": "it"})
        await connection.close()

    assert failed.value.report.status == McpStatus.NEEDS_AUTH
    assert not failed.value.is_lost
