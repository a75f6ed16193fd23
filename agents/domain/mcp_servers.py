"""MCP servers: adding, changing and deleting them, and what a connection is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from agents.conf import mcp_homes_dir
from agents.errors import InvalidInputError
from agents.models import McpServer, McpTool, User
from agents.models.mcp_servers import McpPolicy, McpStatus, McpTransport
from agents.models.sessions import Network
from agents.policy.tools import is_reserved_server_name

from . import audit, releases
from .mcp_offers import may_allow

_SLUG_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class ConnectionSpec:
    """All that a connection is made of; another one needs another connection."""

    server_id: UUID
    slug: str
    transport: str
    generation: int
    command: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    has_network: bool = False
    url: str = field(default="", repr=False)
    may_be_private: bool = False
    """Whether an owner vouches for addresses on this machine or its network."""
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def is_program(self) -> bool:
        return self.transport == McpTransport.STDIO

    @property
    def home(self) -> Path:
        """Where a program keeps its files; nothing is made."""
        return mcp_homes_dir() / self.server_id.hex


def connection_spec(server_id: UUID) -> ConnectionSpec | None:
    """What to connect to right now; None if the server is gone or switched off."""
    server = McpServer.objects.filter(pk=server_id).select_related("owner").first()
    if server is None or not server.is_enabled:
        return None
    return spec_of(server)


def spec_of(server: McpServer) -> ConnectionSpec:
    """What only owners grant does not outlast their being one."""
    is_vouched = is_vouched_for(server)
    folders = server.folders if is_vouched else []
    return ConnectionSpec(
        server_id=server.pk,
        slug=server.slug,
        transport=server.transport,
        generation=server.generation,
        command=(server.command, *server.arguments) if server.command else (),
        folders=tuple(Path(folder) for folder in folders),
        has_network=is_vouched and server.network == Network.OPEN,
        url=server.url,
        may_be_private=is_vouched,
        secrets=tuple(sorted(server.secret_values.items())),
    )


def is_vouched_for(server: McpServer) -> bool:
    """Servers for the whole site are only ever written by owners."""
    return server.owner is None or server.owner.is_owner


def slug_of(name: str) -> str:
    """How tools are named after their server: `GitHub (work)` is `github-work`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:_SLUG_CHARACTERS].strip("-")


def choose_slug(name: str, owner: User | None) -> str:
    """Raises: InvalidInputError for a name that is taken, reserved or wordless."""
    slug = slug_of(name)
    if not slug:
        raise InvalidInputError("A name needs a letter or a digit.", field="name")
    if is_reserved_server_name(slug):
        raise InvalidInputError("This name is OpenSwarm’s own.", field="name")
    if McpServer.objects.filter(owner=owner, slug=slug).exists():
        raise InvalidInputError(
            f"There is a server whose tools are called {slug} already.", field="name"
        )
    return slug


@transaction.atomic
def save_server(
    server: McpServer, user: User, *, secrets: Mapping[str, str]
) -> McpServer:
    """Store a server; it has to be tested anew, and connections to the old one end.

    Raises: InvalidInputError naming the field.
    """
    is_new = server._state.adding
    if is_new:
        server.slug = choose_slug(server.name, server.owner)
    elif McpServer.objects.filter(owner=server.owner, slug=server.slug).exclude(
        pk=server.pk
    ):
        raise InvalidInputError("There is such a server already.", field="name")
    server.secrets = json.dumps(dict(secrets)) if secrets else ""
    server.status, server.reason, server.stderr_tail = McpStatus.UNTESTED, "", ""
    server.generation += 1
    server.save()
    audit.record(
        "mcp_server.created" if is_new else "mcp_server.changed",
        actor=user,
        target=server,
        name=server.name,
        transport=server.transport,
        **_grants(server),
    )
    return server


def _grants(server: McpServer) -> dict[str, Any]:
    """What an auditor wants to know: never a secret, and no address that holds one."""
    if server.is_program:
        return {
            "program": server.command,
            "network": server.network,
            "folders": server.folders,
        }
    return {"url": server.shown_url}


@transaction.atomic
def delete_server(server: McpServer, user: User) -> None:
    """Its connections end, and its files go, when the bridges look the next time."""
    audit.record("mcp_server.deleted", actor=user, target=server, name=server.name)
    names = [tool.full_name for tool in server.tools.select_related("server")]
    owner = server.owner
    server.delete()
    transaction.on_commit(lambda: releases.settle_tools(names, owner, user))


def ask_anew(server: McpServer) -> None:
    """Have every process give up its connection; the next call makes a new one."""
    McpServer.objects.filter(pk=server.pk).update(generation=F("generation") + 1)
    server.refresh_from_db()


@transaction.atomic
def set_policies(server: McpServer, policies: Mapping[int, str], user: User) -> None:
    """Set how the tools with these keys are treated; binds for waiting calls, too.

    Raises: InvalidInputError where somebody's limit does not let them allow anything.
    """
    changed: list[McpTool] = []
    for tool in server.tools.filter(pk__in=policies).select_related("server"):
        policy = McpPolicy(policies[tool.pk])
        if policy != tool.policy:
            tool.policy = policy
            changed.append(tool)
    if server.owner is not None and not may_allow(server.owner):
        _refuse_allowing(changed, server.owner)
    McpTool.objects.bulk_update(changed, ["policy"])
    if changed:
        policies_now = {tool.name: tool.policy for tool in changed}
        audit.record("mcp_server.policies", actor=user, target=server, **policies_now)
    names = [tool.full_name for tool in changed]
    owner = server.owner
    transaction.on_commit(lambda: releases.settle_tools(names, owner, user))


def _refuse_allowing(changed: list[McpTool], person: User) -> None:
    for tool in changed:
        if tool.policy == McpPolicy.ALWAYS_ALLOW:
            raise InvalidInputError(
                f"Your limit is the mode “{person.security_ceiling}”, so {tool.name}"
                " can’t be allowed without asking."
            )


def without_server(server_ids: set[UUID]) -> set[UUID]:
    """Which of these ids belong to no server any longer."""
    there = McpServer.objects.filter(pk__in=server_ids).values_list("pk", flat=True)
    return server_ids - set(there)
