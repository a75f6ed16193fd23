"""The transcript store against the SDK's own contract, and our additions to it."""

from __future__ import annotations

import uuid

import pytest
from asgiref.sync import sync_to_async
from claude_agent_sdk.testing import run_session_store_conformance

from agents.execution.transcript_store import (
    DjangoTranscriptStore,
    has_transcript,
    last_entry_uuid,
)
from agents.models import TranscriptEntry

KEY = {"project_key": "-w", "session_id": str(uuid.uuid4())}


@pytest.mark.django_db(transaction=True)
async def test_it_passes_the_sdks_conformance_suite() -> None:
    async def fresh_store() -> DjangoTranscriptStore:
        await sync_to_async(TranscriptEntry.objects.all().delete)()
        return DjangoTranscriptStore()

    await run_session_store_conformance(
        fresh_store, skip_optional=frozenset({"list_session_summaries"})
    )


@pytest.mark.django_db(transaction=True)
async def test_nul_characters_and_lone_surrogates_survive() -> None:
    store = DjangoTranscriptStore()
    entry = {"type": "user", "uuid": str(uuid.uuid4()), "text": "a\x00b\ud83d"}

    await store.append(KEY, [entry])

    assert await store.load(KEY) == [entry]


@pytest.mark.django_db(transaction=True)
async def test_the_last_entry_of_the_main_conversation_is_found() -> None:
    store = DjangoTranscriptStore()
    session_id = uuid.UUID(KEY["session_id"])
    last = uuid.uuid4()
    await store.append(KEY, [{"type": "user", "uuid": str(uuid.uuid4())}])
    await store.append(KEY, [{"type": "assistant", "uuid": str(last)}])
    await store.append(KEY, [{"type": "summary"}])
    await store.append(
        {**KEY, "subpath": "subagents/agent-1"},
        [{"type": "assistant", "uuid": str(uuid.uuid4())}],
    )

    assert await sync_to_async(has_transcript)(session_id)
    assert await sync_to_async(last_entry_uuid)(session_id) == last
