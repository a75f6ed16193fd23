"""The one poller of a process: what doorbells lost is found within seconds.

It looks once for all live sockets, in one thread, and pokes those that lag behind. It
starts with the first socket and ends with the last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from channels.db import database_sync_to_async
from django.db.models.functions import Length

from agents.conf import conf
from agents.domain.queries.shell import rail_fingerprint
from agents.models import AgentSession, Message, User
from agents.tasks import spawn

from .access import current_user


class Watcher(Protocol):
    """A live socket: a session's page, or with None another page."""

    @property
    def login(self) -> Mapping[str, Any]: ...

    @property
    def watched_session_id(self) -> UUID | None: ...

    async def look(self, finding: Finding) -> None: ...


@dataclass(slots=True)
class Finding:
    """What the database says about one socket's page."""

    user: User | None
    last_seq: int | None = None  # None: no session, or not visible any more
    streams: dict[UUID, int] = field(default_factory=dict)
    fingerprint: tuple[int, ...] = ()


logger = logging.getLogger(__name__)

_watchers: set[Watcher] = set()
_poller: asyncio.Task[None] | None = None


def join(watcher: Watcher) -> None:
    """Have the poller look after this socket."""
    global _poller
    _watchers.add(watcher)
    # Each test has a loop of its own, and a task dies with its loop.
    if _poller is None or _poller.done() or not _is_ours(_poller):
        _poller = spawn(_poll(), name="watch")


def leave(watcher: Watcher) -> None:
    _watchers.discard(watcher)


def _is_ours(task: asyncio.Task[None]) -> bool:
    return task.get_loop() is asyncio.get_running_loop()


async def _poll() -> None:
    """Look again and again; what goes wrong once is found at the next look."""
    while _watchers:
        await asyncio.sleep(conf().watch_poll_seconds)
        try:
            await _look_after(list(_watchers))
        except Exception:
            logger.exception("the poller could not look")


async def _look_after(watchers: list[Watcher]) -> None:
    findings = await database_sync_to_async(look_up)(watchers)
    pairs = zip(watchers, findings, strict=True)
    looks = [watcher.look(finding) for watcher, finding in pairs]
    for failure in await asyncio.gather(*looks, return_exceptions=True):
        if isinstance(failure, Exception):
            logger.error("a page could not be brought up to date", exc_info=failure)


def look_up(watchers: list[Watcher]) -> list[Finding]:
    """One finding per watcher; queries per person and login, not per socket."""
    users: dict[tuple[Any, str], User | None] = {}
    findings = []
    for watcher in watchers:
        key = _login(watcher.login)
        if key not in users:
            users[key] = current_user(watcher.login)
        findings.append(Finding(users[key]))
    _add_sessions(watchers, findings)
    _add_fingerprints(findings)
    return findings


def _login(scope: Mapping[str, Any]) -> tuple[Any, str]:
    session = scope.get("session")
    return scope["user"].pk, session.session_key if session is not None else ""


def _add_sessions(watchers: list[Watcher], findings: list[Finding]) -> None:
    pairs = list(zip(watchers, findings, strict=True))
    streams = _streams([watcher.watched_session_id for watcher in watchers])
    for user in {finding.user for finding in findings if finding.user}:
        own = [pair for pair in pairs if pair[1].user == user]
        visible = AgentSession.objects.visible_to(user).filter(
            pk__in=[watcher.watched_session_id for watcher, _ in own]
        )
        seqs = dict(visible.values_list("pk", "last_seq"))
        for watcher, finding in own:
            session_id = watcher.watched_session_id
            if session_id in seqs:
                finding.last_seq = seqs[session_id]
                finding.streams = streams.get(session_id, {})


def _streams(session_ids: list[UUID | None]) -> dict[UUID, dict[UUID, int]]:
    """The stored length of every text that streams in these sessions."""
    rows = Message.objects.filter(session_id__in=session_ids, is_streaming=True)
    lengths: dict[UUID, dict[UUID, int]] = {}
    for session_id, message_id, length in rows.values_list(
        "session_id", "pk", Length("text")
    ):
        lengths.setdefault(session_id, {})[message_id] = length
    return lengths


def _add_fingerprints(findings: list[Finding]) -> None:
    known: dict[UUID, tuple[int, ...]] = {}
    for finding in findings:
        if finding.user is None:
            continue
        if finding.user.pk not in known:
            known[finding.user.pk] = rail_fingerprint(finding.user)
        finding.fingerprint = known[finding.user.pk]
