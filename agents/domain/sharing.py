"""Sharing: who else works in a folder, without naming what a person may not see.

Agents in one folder see and overwrite each other's files, so pages warn of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from uuid import UUID

from django.db.models import Count, QuerySet

from agents.models import AgentSession, ListedFolder, User

from .workspaces import sessions_sharing

MAX_NAMED = 3
_MAX_READ = 200


@dataclass(frozen=True, slots=True)
class Sharing:
    """The open sessions that work in a folder, within it or in one around it."""

    named: tuple[AgentSession, ...]
    """The first few of those that the person may see."""
    total: int

    @property
    def unnamed(self) -> int:
        return self.total - len(self.named)


def sharing_of(session: AgentSession, user: User) -> Sharing | None:
    """Who else works where the session does; None when nobody does."""
    if session.owns_cwd or session.closed_at is not None or session.is_sub_agent:
        return None
    others = sessions_sharing(session.cwd, but=session.pk)
    total = others.count()
    if not total:
        return None
    return Sharing(tuple(_visible(others, user)[:MAX_NAMED]), total)


def sharing_in(
    folders: Iterable[ListedFolder], user: User
) -> list[tuple[ListedFolder, Sharing]]:
    """The folders in which somebody works, and who; two queries."""
    at_work = AgentSession.objects.filter(
        closed_at=None, parent_session=None, owns_cwd=False
    )
    counts = dict(at_work.order_by().values_list("cwd").annotate(Count("pk")))
    visible = list(_visible(at_work, user)[:_MAX_READ])
    shared = []
    for folder in folders:
        places = {cwd for cwd in counts if _overlap(cwd, folder.path)}
        if places:
            named = [session for session in visible if session.cwd in places]
            total = sum(counts[cwd] for cwd in places)
            shared.append((folder, Sharing(tuple(named[:MAX_NAMED]), total)))
    return shared


def _visible(sessions: QuerySet[AgentSession], user: User) -> QuerySet[AgentSession]:
    ids: QuerySet[AgentSession, UUID] = AgentSession.objects.visible_to(
        user
    ).values_list("pk", flat=True)
    return sessions.filter(pk__in=ids).only("name", "cwd").order_by("-updated_at")


def _overlap(one: str, other: str) -> bool:
    first, second = PurePath(one), PurePath(other)
    return first.is_relative_to(second) or second.is_relative_to(first)
