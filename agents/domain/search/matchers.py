"""The one door to search: which sessions match, and which messages in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import Q

from agents.models import User
from agents.rendering.text import clean_text

from . import scan
from .index import backend_of

MAX_QUERY_CHARACTERS = 200
_TRIGRAM = 3


@dataclass(frozen=True, slots=True)
class Matcher:
    """Case-insensitive: the text as it stands, no character of it is special."""

    query: str
    user: User

    @property
    def is_short(self) -> bool:
        """Whether only names and the newest sessions are searched."""
        return len(self.query) < _TRIGRAM

    def sessions(self) -> Q:
        """A filter for sessions; who may see them is for the caller to say."""
        if self.is_short:
            return scan.sessions_with(self.query, self.user)
        found: Q = backend_of(connection).sessions_with(self.query)
        return found

    def newest_hits(self, session_ids: Iterable[UUID], count: int) -> Q:
        """A filter for the newest `count` matching messages of each session."""
        if self.is_short:
            return scan.newest_hits(self.query, session_ids, count)
        found: Q = backend_of(connection).newest_hits(self.query, session_ids, count)
        return found


def find_matcher(query: str, user: User) -> Matcher | None:
    """None for an empty query."""
    query = clean_text(query).strip()[:MAX_QUERY_CHARACTERS].strip()
    return Matcher(query, user) if query else None
