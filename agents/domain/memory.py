"""What a person's agents remember: added, changed, found and forgotten.

Facts are few and short, since each turn of each agent is told the newest of them.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.conf import conf
from agents.errors import InvalidInputError
from agents.models import AgentSession, Memory, User
from agents.models.memory import MEMORY_CHARACTERS, MemoryQuerySet
from agents.rendering.text import clean_text, is_blank

SEARCH_RESULTS = 20


@transaction.atomic
def save_memory(
    owner: User, text: str, *, source_session: AgentSession | None = None
) -> Memory:
    """Keep a fact; one that is kept already is only made new again.

    Raises: InvalidInputError naming `text`: empty, too long, or one too many.
    """
    fact = _checked(text)
    # Two saves at once must not pass the limit together.
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    known = owner.memories.filter(text=fact).first()
    if known is not None:
        known.updated_at = timezone.now()
        known.save(update_fields=["updated_at"])
        return known
    limit = conf().memory_facts
    if owner.memories.count() >= limit:
        raise InvalidInputError(
            f"{limit} facts are kept already. Delete one that is no longer needed.",
            field="text",
        )
    return Memory.objects.create(owner=owner, text=fact, source_session=source_session)


@transaction.atomic
def change_memory(memory: Memory, text: str) -> None:
    """Raises: InvalidInputError naming `text`, also where another fact says so."""
    fact = _checked(text)
    others = Memory.objects.filter(owner=memory.owner_id, text=fact)
    if others.exclude(pk=memory.pk).exists():
        raise InvalidInputError("This fact is kept already.", field="text")
    memory.text, memory.updated_at = fact, timezone.now()
    memory.save(update_fields=["text", "updated_at"])


def delete_memory(memory: Memory) -> None:
    memory.delete()


def find_memories(owner: User, query: str = "") -> MemoryQuerySet:
    """Those that have every word of the query in them, newest first."""
    wanted = Q()
    for word in clean_text(query).split()[:10]:
        wanted &= Q(text__icontains=word)
    return Memory.objects.visible_to(owner).filter(wanted)


def _checked(text: str) -> str:
    """On one line: a fact is no document, and no list of orders."""
    fact = " ".join(clean_text(text).split())
    if is_blank(fact):
        raise InvalidInputError("Say what to remember.", field="text")
    if len(fact) > MEMORY_CHARACTERS:
        raise InvalidInputError(
            f"A fact has at most {MEMORY_CHARACTERS} characters; this has {len(fact)}.",
            field="text",
        )
    return fact
