"""Streamed text on its way to the pages: joined, published, saved now and then.

Each delta event carries all text since the length that is surely in the row, so no
buffer is needed anywhere: who missed some re-reads the row.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from agents.conf import conf
from agents.domain import blocks
from agents.events.bus import publish_delta
from agents.events.vocabulary import StreamDelta
from agents.rendering.text import clean_text

from .database import in_database

# Each delta event repeats what is not in the row yet, so that is kept short.
MAX_UNSAVED_CHARACTERS = 16_384


class BlockStream:
    """The text of one message row that is being written."""

    def __init__(self, session_id: UUID, message_id: UUID) -> None:
        self.session_id = session_id
        self.message_id = message_id
        self._text = ""
        self._saved = 0  # characters surely in the row
        self._published = 0
        self._saved_at = asyncio.get_running_loop().time()

    @property
    def text(self) -> str:
        return self._text

    def append(self, delta: str) -> None:
        self._text += clean_text(delta)

    async def flush(self) -> None:
        """Publish what is new, and save the row about once a second.

        Also when nothing is new: a model that pauses must not hide its last words.
        """
        if self._published < len(self._text):
            await self._publish()
        now = asyncio.get_running_loop().time()
        is_old = now - self._saved_at >= conf().delta_save_seconds
        unsaved = len(self._text) - self._saved
        if unsaved > MAX_UNSAVED_CHARACTERS or (unsaved and is_old):
            await self.save()

    async def _publish(self) -> None:
        text = self._text
        await publish_delta(
            StreamDelta(
                session_id=self.session_id,
                message_id=self.message_id,
                offset=self._saved,
                text=text[self._saved :],
            )
        )
        self._published = len(text)

    async def save(self) -> None:
        text = self._text
        await in_database(blocks.save_stream, self.message_id, text)
        self._saved = len(text)
        self._saved_at = asyncio.get_running_loop().time()


class DeltaWriter:
    """All open streams of one turn, flushed at most 20 times a second each."""

    def __init__(self) -> None:
        self._streams: dict[UUID, BlockStream] = {}

    def open(self, session_id: UUID, message_id: UUID) -> BlockStream:
        stream = BlockStream(session_id, message_id)
        self._streams[message_id] = stream
        return stream

    def close(self, stream: BlockStream) -> None:
        self._streams.pop(stream.message_id, None)

    async def run(self) -> None:
        """Flush until cancelled."""
        while True:
            await asyncio.sleep(conf().delta_join_seconds)
            await self.flush()

    async def flush(self) -> None:
        for stream in list(self._streams.values()):
            await stream.flush()

    async def save_all(self) -> None:
        """Put every half text into its row: the turn ends early."""
        for stream in list(self._streams.values()):
            await stream.flush()
            await stream.save()
