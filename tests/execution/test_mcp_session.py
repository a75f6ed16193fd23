"""Servers from "add" on the page to an approved call, on the real CLI."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents.demo.server import DemoServer
from agents.execution.confinement import probe_jail
from agents.execution.engine import Engine
from agents.models import McpServer, User
from agents.models.mcp_servers import McpStatus
from tests.mcp.http_server import Site, far_server
from tests.mcp.programs import notes_command, notes_folders

from .conftest import Chat, in_thread

pytestmark = [
    pytest.mark.cli,
    pytest.mark.skipif(not probe_jail().jailed, reason="no jail here"),
]

WRITE = "mcp__notes__write_note"
READ = "mcp__notes__read_note"
LOOK = "mcp__far__look"


def using(tool: str, **arguments: Any) -> str:
    return f"demo: tool {tool} {json.dumps(arguments)}"


class Settings:
    """The pages under Settings → MCP servers, as a person uses them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @classmethod
    async def of(cls, user: User) -> Settings:
        client = Client()
        await in_thread(client.force_login, user)
        return cls(client)

    async def add_program(self, name: str, how: str = "") -> McpServer:
        return await self._add(
            name=name,
            transport="stdio",
            command_line=shlex.join(notes_command(how)),
            environment="TOKEN=s3cret",
            folders="\n".join(notes_folders()),
        )

    async def add_address(self, name: str, site: Site) -> McpServer:
        headers = f"Authorization: Bearer {site.token}"
        return await self._add(
            name=name, transport="http", url=site.url, headers=headers
        )

    async def _add(self, **form: str) -> McpServer:
        url = reverse("mcp_server_new")
        added = await in_thread(self._client.post, url, {**form, "is_enabled": "on"})
        assert added.status_code == 302, added.content
        server = await in_thread(McpServer.objects.get, name=form["name"])
        return await self.test(server)

    async def test(self, server: McpServer) -> McpServer:
        url = reverse("mcp_server_test", args=[server.pk])
        await in_thread(self._client.post, url)
        await in_thread(server.refresh_from_db)
        return server

    async def set_policy(self, server: McpServer, tool: str, policy: str) -> None:
        row = await in_thread(server.tools.get, name=tool)
        url = reverse("mcp_server_policies", args=[server.pk])
        await in_thread(self._client.post, url, {f"policy-{row.pk}": policy})


async def last_result(chat: Chat) -> str:
    return (await chat.results())[-1].text


async def ask(
    chat: Chat, tool: str, *, approve: bool | None = None, **arguments: Any
) -> str:
    """One more turn that uses a tool. Returns: what came of it."""
    turns = len(await in_thread(lambda: list(chat.session.runs.all())))
    await chat.send(using(tool, **arguments))
    if approve is not None:
        await chat.decide(is_approved=approve)
    assert (await chat.finished(turns + 1)).success
    return await last_result(chat)


async def test_added_servers_serve_approved_calls(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    pages = await Settings.of(alice)
    with far_server(Site(token="t0ken")) as site:
        notes = await pages.add_program("Notes")
        far = await pages.add_address("Far", site)
        assert (notes.status, far.status) == (McpStatus.CONNECTED,) * 2

        # Asked by default, approved, and done by the program.
        chat = await Chat.launch(alice, using(WRITE, title="a", text="milk"))
        asked = await chat.decide(is_approved=True)
        assert (await chat.finished()).success
        assert (asked.tool_name, await last_result(chat)) == (WRITE, "written: a")

        # Of the address as well; a denied call never reaches it.
        await ask(chat, LOOK, approve=True, what="the sky")
        await ask(chat, "mcp__far__change", approve=False, what="the sky")
        assert site.said == ["the sky"]

        # A policy spares the question; another one ends the tool, for the model too.
        await pages.set_policy(notes, "read_note", "always_allow")
        await pages.set_policy(notes, "write.note", "deny")
        assert await ask(chat, READ, title="a") == "milk"
        await ask(chat, WRITE, title="a", text="beer")
        assert await ask(chat, READ, title="a") == "milk"

        # A credential that stops working is an answer, and the session goes on.
        site.token = "another"
        refused = await ask(chat, LOOK, approve=True, what="the sea")
        assert "refuses the credentials" in refused

    requests = await chat.requests(demo)
    first, last = requests[0].body, requests[-1].body
    assert first is not None
    assert last is not None
    tools = {tool["name"]: tool for tool in first["tools"]}
    assert {WRITE, READ, LOOK} <= set(tools)
    assert tools[WRITE]["input_schema"]["required"] == ["title", "text"]
    assert WRITE not in {tool["name"] for tool in last["tools"]}
    told = json.dumps(first["system"])
    assert "MCP server: notes" in told
    for secret in ("s3cret", "t0ken"):
        assert secret not in json.dumps([each.body for each in requests])


async def test_broken_servers_leave_the_session_usable(
    engine: Engine, alice: User, demo: DemoServer, override_conf: Any
) -> None:
    pages = await Settings.of(alice)
    dying = await pages.add_program("Dying", "die")
    flooding = await pages.add_program("Flooding", "flood")
    hanging = await pages.add_program("Hanging")
    assert (dying.reason, dying.stderr_tail) == (
        "The program ended (exit status 7).",
        "no database here",
    )
    assert flooding.status == McpStatus.CONNECTED
    # It worked when it was looked at, and hangs from now on.
    override_conf(mcp_start_seconds=2)
    await in_thread(
        McpServer.objects.filter(pk=hanging.pk).update,
        arguments=notes_command("hang")[1:],
    )

    chat = await Chat.launch(alice, using("mcp__hanging__read_note", title="a"))
    await chat.decide(is_approved=True)
    assert (await chat.finished()).success
    assert "did not answer within 2 s" in await last_result(chat)

    override_conf(mcp_start_seconds=60)
    said = await ask(chat, "mcp__flooding__read_note", approve=True, title="a")
    assert said == "no note a"


async def test_modes_that_only_read_have_no_servers(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    notes = await (await Settings.of(alice)).add_program("Notes")
    chat = await Chat.launch(alice, using(WRITE, title="a", text="x"), mode="ask")
    await chat.finished()

    (first, *_) = await chat.requests(demo)
    assert first.body is not None
    assert not [tool for tool in first.body["tools"] if "notes" in tool["name"]]
    assert "<connected_mcp_tools>" not in json.dumps(first.body["system"])
    assert "written" not in await last_result(chat)
    assert notes.status == McpStatus.CONNECTED, "the control: it would have worked"
