"""Asks a cheap model for titles and group names, in the background of the turns.

What to ask and what comes of the answers stands in `domain/metadata.py`. Nothing here
fails a turn: without an answer, the first words and the tools' own names do.
"""

from __future__ import annotations

import logging
from functools import partial
from uuid import UUID

from agents.conf import conf
from agents.domain import metadata
from agents.domain.metadata import GroupTask
from agents.gateway.server import Gateway

from .background import Background
from .database import in_database
from .quick_llm import QuickLlmError, quick_llm_call, quick_llm_json

logger = logging.getLogger(__name__)

TITLE_TOKENS = 30
GROUP_TOKENS = 300

_current: Namer | None = None


class Namer:
    """Hears of turns and tool calls, and has what is new named."""

    def __init__(self, gateway: Gateway, background: Background) -> None:
        self._gateway = gateway
        self._background = background

    def start(self) -> None:
        global _current
        _current = self

    def stop(self) -> None:
        global _current
        if _current is self:
            _current = None

    def name_session(self, session_id: UUID, *, is_last_try: bool) -> None:
        job = partial(
            generate_title, self._gateway, session_id, is_last_try=is_last_try
        )
        self._background.submit(("title", session_id), job)

    def name_groups(self, session_id: UUID) -> None:
        job = partial(name_new_groups, self._gateway, session_id)
        self._background.submit(("groups", session_id), job)


def turn_began(session_id: UUID) -> None:
    """Returns at once, like the other two; without an engine nothing happens."""
    if (namer := _namer()) is not None:
        namer.name_session(session_id, is_last_try=False)


def tool_was_used(session_id: UUID) -> None:
    if (namer := _namer()) is not None:
        namer.name_groups(session_id)


def turn_ended(session_id: UUID) -> None:
    if (namer := _namer()) is not None:
        namer.name_session(session_id, is_last_try=True)
        namer.name_groups(session_id)


def _namer() -> Namer | None:
    return _current if conf().generate_titles else None


async def generate_title(
    gateway: Gateway, session_id: UUID, *, is_last_try: bool = True
) -> bool:
    """Name the session after its first message, unless a person named it.

    Without an answer the name stays as it was made from the first words; unless this
    was the last try, the next turn's end is another occasion.

    Returns: whether this settled the name.
    """
    prompt = await in_database(metadata.title_prompt, session_id)
    if prompt is None:
        return False
    try:
        answer = await quick_llm_call(
            gateway,
            session_id,
            prompt,
            system=metadata.TITLE_SYSTEM,
            max_tokens=TITLE_TOKENS,
        )
    except QuickLlmError as error:
        logger.info("session %s got no title: %s", session_id, error)
        if not is_last_try:
            return False
        answer = ""
    return await in_database(metadata.apply_title, session_id, answer)


async def name_new_groups(gateway: Gateway, session_id: UUID) -> None:
    """Name what has no name yet, and better what is over; one after the other."""
    for task in await in_database(metadata.groups_to_name, session_id):
        await generate_group_meta(gateway, task)


async def generate_group_meta(gateway: Gateway, task: GroupTask) -> bool:
    """A name and an icon for a group; without an answer the tools' own name.

    Returns: whether the name was kept.
    """
    answer: dict[str, object] = {}
    try:
        answer = await quick_llm_json(
            gateway,
            task.session_id,
            task.prompt,
            schema=metadata.GROUP_SCHEMA,
            system=metadata.GROUP_SYSTEM,
            max_tokens=GROUP_TOKENS,
        )
    except QuickLlmError as error:
        logger.info("group %s got no name: %s", task.group_id, error)
    return await in_database(
        metadata.save_group_meta,
        task.session_id,
        task.group_id,
        name=_text(answer.get("name")) or task.fallback,
        svg=_text(answer.get("svg")),
        is_refined=task.is_refinement,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
