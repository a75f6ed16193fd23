"""The model's own memory of a conversation, read and copied by us.

The SDK's transcript is a chain of entries. A branch begins with a copy of the chain up
to where it forks; everything later belongs to the branch alone.
"""

from __future__ import annotations

import json
from uuid import UUID

from django.db.models import QuerySet

from agents.models import TranscriptEntry

SPOKEN = ("user", "assistant")
COPY_BATCH = 500


def has_transcript(sdk_session_id: UUID) -> bool:
    """Whether a conversation was begun under this id, so that it can be resumed.

    A CLI that was killed early leaves entries in which nobody says anything.
    """
    return _main_entries(sdk_session_id).filter(type__in=SPOKEN).exists()


def has_entry(sdk_session_id: UUID, entry_id: UUID) -> bool:
    return _main_entries(sdk_session_id).filter(uuid=str(entry_id)).exists()


def turn_end_before(sdk_session_id: UUID, entry_id: UUID) -> UUID | None:
    """The message that the entry answers: where its turn can be begun again.

    Returns: None when the conversation begins with the entry.
    """
    parents = {
        row.uuid: (json.loads(row.entry).get("parentUuid"), row.type)
        for row in _main_entries(sdk_session_id).exclude(uuid="")
    }
    parent, _ = parents.get(str(entry_id), (None, ""))
    while parent is not None and parent in parents:
        before, kind = parents[parent]
        if kind in SPOKEN:
            return UUID(parent)
        parent = before
    return None


def is_summarised_after(sdk_session_id: UUID, entry_id: UUID) -> bool:
    """Whether the conversation was summarised later: it can't be resumed there then."""
    entries = _main_entries(sdk_session_id)
    entry = entries.filter(uuid=str(entry_id)).order_by("id").first()
    if entry is None:
        return False
    later = entries.filter(pk__gt=entry.pk, type="system")
    return later.filter(entry__contains='"compact_boundary"').exists()


def plan_slug_of(sdk_session_id: UUID) -> str:
    """What the CLI calls the plan of this conversation; empty before it says so."""
    prompts = _main_entries(sdk_session_id).filter(type="user").order_by("-id")
    newest = prompts.values_list("entry", flat=True).first()
    slug = json.loads(newest).get("slug") if newest else None
    return slug if isinstance(slug, str) else ""


def last_entry_uuid(sdk_session_id: UUID) -> UUID | None:
    """The message that the conversation ends with now."""
    found = (
        _main_entries(sdk_session_id)
        .filter(type__in=SPOKEN)
        .exclude(uuid="")
        .order_by("-id")
        .values_list("uuid", flat=True)
        .first()
    )
    return UUID(found) if found else None


def _main_entries(sdk_session_id: UUID) -> QuerySet[TranscriptEntry]:
    return TranscriptEntry.objects.filter(
        sdk_session_id=str(sdk_session_id), subpath=""
    )


def copy_transcript(
    source_id: UUID, up_to: UUID, target_id: UUID, *, project_key: str
) -> bool:
    """Begin the conversation `target_id` with the other's memory up to an entry.

    What comes after the entry is left behind, sub-agents' transcripts are copied
    whole. Resume the copy *at* `up_to`: earlier tries that ended before it are in it.

    Returns: False when the source has no such entry.
    """
    cut = _main_entries(source_id).filter(uuid=str(up_to)).order_by("id").first()
    if cut is None:
        return False
    source = TranscriptEntry.objects.filter(sdk_session_id=str(source_id))
    main = source.filter(subpath="", pk__lte=cut.pk)
    kept = (main | source.exclude(subpath="")).order_by("pk")
    copies = (
        _copy(entry, target_id, project_key) for entry in kept.iterator(COPY_BATCH)
    )
    TranscriptEntry.objects.bulk_create(
        copies, batch_size=COPY_BATCH, ignore_conflicts=True
    )
    return True


def _copy(entry: TranscriptEntry, target_id: UUID, project_key: str) -> TranscriptEntry:
    content = json.loads(entry.entry)
    if "sessionId" in content:
        content["sessionId"] = str(target_id)
    return TranscriptEntry(
        project_key=project_key,
        sdk_session_id=str(target_id),
        subpath=entry.subpath,
        uuid=entry.uuid,
        type=entry.type,
        entry=json.dumps(content, ensure_ascii=True),
    )
