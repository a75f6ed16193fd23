"""The bridge on real servers: what goes wrong is an answer, and the next call works."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async

from agents.conf import mcp_homes_dir
from agents.domain import mcp_servers
from agents.execution.confinement import probe_jail
from agents.execution.tool_servers import ServerWays
from agents.mcp.bridge import BROKEN, GONE, TOO_SLOW, Bridge
from agents.mcp.sizes import TOO_LARGE
from agents.models import McpServer, User
from agents.models.mcp_servers import McpStatus
from agents.models.users import Role
from tests import factories

from .http_server import Site, far_server
from .programs import notes_command, notes_folders
from .rows import make_server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice(transactional_db: None) -> User:
    return factories.make_user("alice", role=Role.OWNER)


@pytest.fixture
async def bridge(transactional_db: None) -> AsyncIterator[Bridge]:
    bridge = Bridge(ServerWays(probe_jail()))
    yield bridge
    await bridge.close()


@pytest.fixture
def notes(alice: User) -> McpServer:
    if not probe_jail().jailed:
        pytest.skip("no jail here")
    command, *arguments = notes_command()
    return make_server(
        alice,
        transport="stdio",
        command=command,
        arguments=arguments,
        folders=notes_folders(),
    )


async def call(
    bridge: Bridge, server_id: UUID, tool: str, **arguments: Any
) -> tuple[bool, str]:
    result = await bridge.call(server_id, tool, arguments)
    return result.is_error, getattr(result.content[0], "text", "")


async def reload(server: McpServer) -> McpServer:
    await sync_to_async(server.refresh_from_db)()
    return server


async def test_one_program_serves_many_calls_until_it_crashes(
    bridge: Bridge, notes: McpServer
) -> None:
    written = await call(bridge, notes.pk, "write.note", title="a", text="b")
    read = await call(bridge, notes.pk, "read_note", title="a")
    crashed = await call(bridge, notes.pk, "crash")
    status = (await reload(notes)).status
    again = await call(bridge, notes.pk, "read_note", title="a")

    assert (written, read) == ((False, "written: a"), (False, "b"))
    reason = "The program ended (exit status 3)."
    assert crashed == (True, BROKEN.format(slug="notes", reason=reason))
    assert status == McpStatus.ERROR
    assert again == (False, "b")
    assert (await reload(notes)).status == McpStatus.CONNECTED
    assert await sync_to_async(notes.tools.count)() == 5


async def test_a_call_without_an_answer_ends_alone(
    bridge: Bridge, notes: McpServer, override_conf: Any
) -> None:
    await call(bridge, notes.pk, "read_note", title="a")
    override_conf(mcp_call_seconds=0.2)
    slept = await call(bridge, notes.pk, "sleep")
    override_conf(mcp_call_seconds=60)

    assert slept == (True, TOO_SLOW.format(slug="notes", seconds=0.2))
    assert await call(bridge, notes.pk, "read_note", title="a") == (False, "no note a")


async def test_what_the_server_says_of_a_bad_call_reaches_the_model(
    bridge: Bridge, notes: McpServer
) -> None:
    is_error, text = await call(bridge, notes.pk, "read_note")
    unknown, _ = await call(bridge, notes.pk, "no_such_tool")

    assert (is_error, unknown) == (True, True)
    assert "title" in text


async def test_a_server_that_was_restarted_is_met_anew(
    bridge: Bridge, alice: User
) -> None:
    with far_server() as site:
        server = await sync_to_async(make_server)(alice, "Far", url=site.url)
        before = await call(bridge, server.pk, "look", what="it")
    port = int(site.url.rpartition(":")[2].partition("/")[0])
    with far_server(site, port=port):
        after = await call(bridge, server.pk, "look", what="it")

        assert before == after == (False, "it is fine")
        await bridge.close()


async def test_an_answer_beyond_all_bounds_ends_one_call_alone(
    bridge: Bridge, alice: User
) -> None:
    with far_server(is_json=True) as site:
        server = await sync_to_async(make_server)(alice, "Far", url=site.url)
        site.padding = 17 * 1024**2
        large = await call(bridge, server.pk, "look", what="it")
        site.padding = 0
        after = await call(bridge, server.pk, "look", what="it")
        await bridge.close()

    assert large[0]
    assert TOO_LARGE.format(megabytes=16) in large[1]
    assert after == (False, "it is fine")
    assert (await reload(server)).status == McpStatus.CONNECTED


async def test_a_dead_server_is_tried_again_only_when_somebody_asks(
    bridge: Bridge, alice: User
) -> None:
    with far_server(Site(status=500)) as site:
        server = await sync_to_async(make_server)(alice, "Far", url=site.url)
        dead = await call(bridge, server.pk, "look", what="it")
        site.status = 0
        still = await call(bridge, server.pk, "look", what="it")
        await sync_to_async(mcp_servers.ask_anew)(server)
        asked = await call(bridge, server.pk, "look", what="it")
        await bridge.close()

    assert dead == still
    assert "HTTP 500" in dead[1]
    assert asked == (False, "it is fine")


async def test_a_refused_credential_stands_on_the_row(
    bridge: Bridge, alice: User
) -> None:
    with far_server(Site(token="t0ken")) as site:
        headers = {"Authorization": "Bearer t0ken"}
        server = await sync_to_async(make_server)(
            alice, "Far", url=site.url, secrets=headers
        )
        assert not (await call(bridge, server.pk, "look", what="it"))[0]
        site.token = "another"
        refused = await call(bridge, server.pk, "look", what="it")
        await bridge.close()

    assert "refuses the credentials" in refused[1]
    assert (await reload(server)).status == McpStatus.NEEDS_AUTH


@pytest.mark.parametrize("how", ["deleted", "off", "unknown"])
async def test_a_server_that_is_gone_gives_an_answer(
    bridge: Bridge, alice: User, how: str
) -> None:
    server = await sync_to_async(make_server)(alice)
    server_id = server.pk
    if how == "deleted":
        await sync_to_async(mcp_servers.delete_server)(server, alice)
    if how == "off":
        await sync_to_async(McpServer.objects.update)(is_enabled=False)

    answer = await call(bridge, uuid4() if how == "unknown" else server_id, "look")

    assert answer == (True, GONE)


async def test_a_deleted_servers_connection_and_files_go(
    bridge: Bridge, alice: User, notes: McpServer
) -> None:
    await call(bridge, notes.pk, "write.note", title="a", text="b")
    home = mcp_homes_dir() / notes.pk.hex
    await bridge.tidy()
    kept = _files(home)

    await sync_to_async(mcp_servers.delete_server)(notes, alice)
    await bridge.tidy()
    await bridge.close()
    await bridge.tidy()

    assert "a" in kept
    assert not home.exists()


async def test_an_unused_connection_is_closed(
    bridge: Bridge, notes: McpServer, override_conf: Any
) -> None:
    await call(bridge, notes.pk, "read_note", title="a")
    home = mcp_homes_dir() / notes.pk.hex
    running = [path.name for path in home.glob("l-*")]

    override_conf(mcp_idle_seconds=0)
    await bridge.tidy()
    await bridge.close()

    assert len(running) == 1, "the control: it was at work"
    assert list(home.glob("l-*")) == []


def _files(home: Path) -> list[str]:
    return [path.name for path in (home / "h").iterdir()]
