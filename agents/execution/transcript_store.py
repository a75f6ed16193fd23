"""The SDK's `SessionStore` over our database.

With it any worker on any machine resumes any session, and the CLI's own clean-up of
old transcripts loses nothing. Entries are opaque; only `uuid` and `type` are read.
"""

from __future__ import annotations

import json
from typing import Any, cast

from claude_agent_sdk import SessionKey, SessionListSubkeysKey, SessionStoreEntry
from claude_agent_sdk.types import SessionStoreListEntry
from django.db.models import Max

from agents.models import TranscriptEntry

from .database import in_database

SPOKEN = ("user", "assistant")


class DjangoTranscriptStore:
    """Duck-typed: the SDK takes a method that is missing as "not offered"."""

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        await in_database(_append, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return await in_database(_load, key)

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return await in_database(_list_sessions, project_key)

    async def delete(self, key: SessionKey) -> None:
        await in_database(_delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return await in_database(_list_subkeys, key)


def _append(key: SessionKey, entries: list[SessionStoreEntry]) -> None:
    """Write the batch in order; an entry whose uuid is there already is skipped.

    ASCII JSON keeps NUL characters and lone surrogates as escapes, so that no
    database refuses an entry.
    """
    TranscriptEntry.objects.bulk_create(
        [
            TranscriptEntry(
                project_key=key["project_key"],
                sdk_session_id=key["session_id"],
                subpath=key.get("subpath", ""),
                uuid=str(entry.get("uuid") or ""),
                type=str(entry.get("type") or "")[:40],
                entry=json.dumps(entry, ensure_ascii=True),
            )
            for entry in entries
        ],
        ignore_conflicts=True,
    )


def _load(key: SessionKey) -> list[SessionStoreEntry] | None:
    rows = _rows(key).order_by("id").values_list("entry", flat=True)
    return [cast(SessionStoreEntry, json.loads(row)) for row in rows] or None


def _rows(key: SessionKey) -> Any:
    return TranscriptEntry.objects.filter(
        project_key=key["project_key"],
        sdk_session_id=key["session_id"],
        subpath=key.get("subpath", ""),
    )


def _list_sessions(project_key: str) -> list[SessionStoreListEntry]:
    sessions = (
        TranscriptEntry.objects.filter(project_key=project_key, subpath="")
        .values("sdk_session_id")
        .annotate(newest=Max("created_at"))
    )
    return [
        {
            "session_id": session["sdk_session_id"],
            "mtime": int(session["newest"].timestamp() * 1000),
        }
        for session in sessions
    ]


def _delete(key: SessionKey) -> None:
    """A main transcript takes its sub-agents' with it."""
    if key.get("subpath"):
        _rows(key).delete()
        return
    TranscriptEntry.objects.filter(
        project_key=key["project_key"], sdk_session_id=key["session_id"]
    ).delete()


def _list_subkeys(key: SessionListSubkeysKey) -> list[str]:
    return list(
        TranscriptEntry.objects.filter(
            project_key=key["project_key"], sdk_session_id=key["session_id"]
        )
        .exclude(subpath="")
        .order_by("subpath")
        .values_list("subpath", flat=True)
        .distinct()
    )
