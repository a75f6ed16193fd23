"""The transcript store against the SDK's own contract, and our additions to it."""

from __future__ import annotations

import uuid
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from claude_agent_sdk import SessionKey, SessionStore, SessionStoreEntry
from claude_agent_sdk.testing import run_session_store_conformance

from agents.domain.transcripts import (
    has_entry,
    has_transcript,
    last_entry_uuid,
    turn_end_before,
)
from agents.execution.transcript_store import DjangoTranscriptStore
from agents.models import TranscriptEntry

pytestmark = pytest.mark.django_db(transaction=True)

SESSION_ID = uuid.uuid4()
KEY = SessionKey(project_key="-w", session_id=str(SESSION_ID))


def entry(kind: str, parent: uuid.UUID | None = None, **fields: Any) -> Any:
    known = {"type": kind, "uuid": str(uuid.uuid4()), **fields}
    if parent is not None:
        known["parentUuid"] = str(parent)
    return cast(SessionStoreEntry, known)


def uuid_of(written: Any) -> uuid.UUID:
    return uuid.UUID(written["uuid"])


async def test_it_passes_the_sdks_conformance_suite() -> None:
    async def fresh_store() -> SessionStore:
        await sync_to_async(TranscriptEntry.objects.all().delete)()
        return cast(SessionStore, DjangoTranscriptStore())

    await run_session_store_conformance(
        fresh_store, skip_optional=frozenset({"list_session_summaries"})
    )


async def test_nul_characters_and_lone_surrogates_survive() -> None:
    store = DjangoTranscriptStore()
    written = entry("user", text="a\x00b\ud83d")

    await store.append(KEY, [written])

    assert await store.load(KEY) == [written]


async def test_the_last_entry_of_the_main_conversation_is_found() -> None:
    store = DjangoTranscriptStore()
    last, in_sub_agent = entry("assistant"), entry("assistant")
    await store.append(KEY, [entry("user")])
    await store.append(KEY, [last])
    await store.append(KEY, [cast(SessionStoreEntry, {"type": "summary"})])
    await store.append({**KEY, "subpath": "subagents/agent-1"}, [in_sub_agent])

    assert await sync_to_async(has_transcript)(SESSION_ID)
    assert await sync_to_async(last_entry_uuid)(SESSION_ID) == uuid_of(last)
    assert not await sync_to_async(has_entry)(SESSION_ID, uuid_of(in_sub_agent))


async def test_a_prompts_turn_begins_after_the_message_before_it() -> None:
    store = DjangoTranscriptStore()
    first = entry("user")
    answer = entry("assistant", uuid_of(first))
    note = entry("attachment", uuid_of(answer))
    second = entry("user", uuid_of(note))
    await store.append(KEY, [first, answer, note, second])
    before = sync_to_async(turn_end_before)

    assert await before(SESSION_ID, uuid_of(second)) == uuid_of(answer)
    assert await before(SESSION_ID, uuid_of(first)) is None
