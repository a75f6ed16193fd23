"""An engine without a process: it claims, remembers and answers as the real one does.

Everything around the CLI is real: the claim, what a turn starts with, the transcript
store, the rows, the end. Only who speaks is scripted. It keeps its transcript as the
CLI does, a chain of entries in which each names the one before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID, uuid4

from claude_agent_sdk import SessionKey, SessionStoreEntry, project_key_for_directory

from agents.domain import runs
from agents.domain.runs import RunOutcome
from agents.execution.confinement import JailStatus
from agents.execution.preparation import Prepared, end_of_transcript, prepare
from agents.execution.transcript_store import _append as append
from agents.models import AgentSession, Run, TranscriptEntry
from agents.models.runs import RunState, StopReason
from tests import factories

SPOKEN = ("user", "assistant")
INTERRUPTED = "[Request interrupted by user]"
BETWEEN = "\n\n"  # what was missed is said again before the prompt, in one message


@dataclass
class ScriptedTurn:
    """One claimed run."""

    run: Run
    prepared: Prepared
    sent: list[str] = field(default_factory=list)
    """All texts that the model was sent, the prompt last."""
    _leaf: str | None = None

    @classmethod
    def claim(cls, session: AgentSession) -> ScriptedTurn:
        turn = cls.try_to_claim(session)
        assert turn is not None
        return turn

    @classmethod
    def try_to_claim(cls, session: AgentSession) -> ScriptedTurn | None:
        """None where nothing waits for a worker, or it was stopped just now."""
        waiting = session.runs.filter(state=RunState.QUEUED).first()
        run = runs.claim_run(waiting.pk, "scripted") if waiting else None
        if run is None:
            return None
        prepared = prepare(run, JailStatus(jailed=False))
        run.branch.refresh_from_db()
        runs.mark_running(run)
        turn = cls(run, prepared)
        turn._hear()
        return turn

    def _hear(self) -> None:
        start = self.prepared.start
        conversation = self.run.branch.sdk_session_id
        entries = stored(conversation)
        assert start.is_resumed or not entries, "the CLI refuses a used id"
        end = start.resume_at or end_of(entries)
        if start.is_resumed:
            assert str(end) in entries
            self._leaf = str(end)
            self.sent = chain(entries, self._leaf)
        prompt = self.prepared.content
        assert isinstance(prompt, str)
        self.sent += prompt.split(BETWEEN)
        self._write("queue-operation", "", None)
        self._write("user", prompt, self.prepared.prompt_id)
        self._write("attachment", "", uuid4())

    def say(self, text: str) -> UUID:
        """Returns: the id of the row that the page shows."""
        self._write("assistant", text, uuid4())
        return factories.say(self.run, text).pk

    def end(self, stop_reason: StopReason) -> None:
        if stop_reason == StopReason.CANCELLED:
            self._write("user", INTERRUPTED, uuid4())
        last = end_of_transcript(self.run)
        runs.finish_run(
            self.run, RunOutcome(stop_reason=stop_reason, sdk_resume_uuid=last)
        )

    def _write(self, kind: str, text: str, uuid: UUID | None) -> None:
        branch = self.run.branch
        entry: dict[str, Any] = {"type": kind, "sessionId": str(branch.sdk_session_id)}
        if uuid is not None:
            entry |= {"uuid": str(uuid), "parentUuid": self._leaf}
            self._leaf = str(uuid)
        if kind in SPOKEN:
            entry["message"] = {"role": kind, "content": text}
        key = SessionKey(
            project_key=project_key_for_directory(self.prepared.setup.cwd),
            session_id=str(branch.sdk_session_id),
        )
        append(key, cast(list[SessionStoreEntry], [entry]))


def stored(conversation: UUID) -> dict[str, dict[str, Any]]:
    """The entries that have an id, in their order."""
    rows = TranscriptEntry.objects.filter(sdk_session_id=str(conversation), subpath="")
    entries = [json_of(row) for row in rows.order_by("pk")]
    return {entry["uuid"]: entry for entry in entries if "uuid" in entry}


def json_of(row: TranscriptEntry) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(row.entry)
    return entry


def end_of(entries: dict[str, dict[str, Any]]) -> str | None:
    spoken = [uuid for uuid, entry in entries.items() if entry["type"] in SPOKEN]
    return spoken[-1] if spoken else None


def chain(entries: dict[str, dict[str, Any]], leaf: str | None) -> list[str]:
    """What was said up to an entry: the way back over `parentUuid`, turned round."""
    texts: list[str] = []
    while leaf is not None:
        entry = entries[leaf]
        if entry["type"] in SPOKEN and entry["message"]["content"] != INTERRUPTED:
            texts += reversed(entry["message"]["content"].split(BETWEEN))
        leaf = entry["parentUuid"]
    return texts[::-1]
