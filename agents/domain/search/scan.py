"""Searching without an index: for queries too short to have a trigram.

Bounded: all names, and the messages of the newest sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber

from agents.models import AgentSession, Message, User
from agents.models.messages import MessageQuerySet

SCANNED_SESSIONS = 200


def contains(column: str, query: str) -> Q:
    """Case-insensitive; SQLite's LIKE folds ASCII only, its REGEXP is Python's."""
    if connection.vendor == "sqlite":
        return Q(**{f"{column}__iregex": re.escape(query)})
    return Q(**{f"{column}__icontains": query})


def sessions_with(query: str, user: User) -> Q:
    newest = AgentSession.objects.visible_to(user).recent_first()[:SCANNED_SESSIONS]
    said = _matching(query).filter(session_id__in=newest.values("pk"))
    return contains("name", query) | Q(pk__in=said.values("session_id"))


def newest_hits(query: str, session_ids: Iterable[UUID], count: int) -> Q:
    ranked = (
        _matching(query)
        .filter(session_id__in=list(session_ids))
        .annotate(
            place=Window(
                RowNumber(), partition_by="session_id", order_by=F("seq").desc()
            )
        )
        .filter(place__lte=count)
    )
    return Q(pk__in=list(ranked.order_by().values_list("pk", flat=True)))


def _matching(query: str) -> MessageQuerySet:
    visible = Message.objects.filter(is_streaming=False, hidden=False).order_by()
    return visible.filter(contains("text", query))
